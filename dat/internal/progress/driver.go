package progress

import (
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/internal/park"
	"github.com/datxdp/datxdp/wire"
)

// Engine has the methods of wire.Engine that a driver uses. Any goroutine may call the method Ring. Only the owner of
// the engine may call the other methods.
type Engine interface {
	Poll(now wire.Time) (busy bool)
	Next() wire.Time
	Kick(c *wire.Conn) (poll, active bool)
	Ring(c *wire.Conn)
	Connections() int
	Close()
}

// Link has the methods of link.Link that a driver uses. The method Wait sleeps until a packet arrives, the method Wake
// is called, or the limit has passed.
type Link interface {
	Wait(limit time.Duration)
	Wake()
}

// Driver runs one engine. Goroutines that post or wait run the engine in their calls. While there are no such
// goroutines, the background owner runs the engine. Embed a Driver by value and do not copy it.
type Driver struct {
	engine Engine
	token  *wire.Token
	link   Link
	group  *Group // the drivers of the same adapter

	polls uint64   // number of polls by callers, and of posts by callers that take completions; guarded by the token
	empty emptyRun // number of consecutive empty polls by callers; guarded by the token

	served   atomic.Uint64 // number of passes of the background owner that moved packets
	denied   park.Patience // of callers that poll and find the engine owned
	phase    atomic.Uint32 // Phase of the background owner
	servedAt atomic.Int64  // wire.Time of the last poll by the background owner for several waiters
	handover chan struct{} // handOver sends to tell the background owner that a caller parks
	stop     chan struct{} // halt closes it to end run
	done     chan struct{} // run closes it when it ends
}

// Init makes d the driver of an engine with its token and link. The background owner starts with Group.Start.
func (d *Driver) Init(e Engine, token *wire.Token, l Link) {
	d.engine, d.token, d.link = e, token, l
	d.handover, d.stop, d.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
}

// Phase returns the current phase of the background owner.
func (d *Driver) Phase() Phase { return Phase(d.phase.Load()) }

// The method Polls returns the number of polls by callers of Dequeue and Wait. The background owner compares it with an
// earlier value to find out whether callers poll. A poll that a post makes counts too, but only if the goroutine that
// posts takes completions, because such a goroutine will poll again. Only the owner of the engine may call this method.
func (d *Driver) Polls() uint64 { return d.polls }

// Own waits until the caller owns the engine, in the role Control. The wait is short, because other owners hold the
// token for one poll. Own returns false if the driver is closed.
func (d *Driver) Own() bool {
	var p park.Patience
	for !d.token.TryOwn(Control) {
		if d.token.Role() == Closed {
			return false
		}
		p.Wait()
	}
	return true
}

// Disown gives up the engine after a successful Own. If other goroutines have posted meanwhile, it polls first.
func (d *Driver) Disown() { d.disown(Control) }

// disown gives the engine up, for an owner in the given role. If a doorbell rang while the engine was owned, disown
// takes the engine again and polls, so that every post is processed. The result says whether disown polled.
func (d *Driver) disown(role wire.Role) (polled bool) {
	for d.token.Disown() {
		if !d.token.TryOwn(role) {
			return polled // the new owner polls
		}
		d.engine.Poll(Now())
		d.wake()
		polled = true
	}
	return polled
}

// The method poll takes the engine in the given role, polls it once, and gives it up. If the engine is owned, it lets the
// owner go on: the caller may poll in a loop, and its thread may have the owner's processor. It naps, however long the
// engine is owned, because a caller that slept longer would take its events late. The result busy is true if packets moved;
// the result yield is true if the calling thread should yield.
func (d *Driver) poll(now wire.Time, role wire.Role) (busy, yield bool) {
	if !d.token.TryOwn(role) {
		d.denied.Nap()
		return false, false
	}
	d.denied.Reset()
	d.polls++
	busy = d.engine.Poll(now)
	if d.sleeping() && (busy || d.engine.Next() <= now) {
		d.wake()
	}
	yield = d.empty.count(busy, emptyPolls)
	d.disown(role)
	return busy, yield
}

// Post makes the engine process what was posted on c. If the engine is owned, Post rings the doorbell, and the owner
// processes the post. While the background owner polls for several waiters, Post rings the doorbell even if the engine
// is free at the moment. So the next poll sends the posts of all waiters with one system call.
func (d *Driver) Post(c *wire.Conn) {
	if d.pollsSoon() {
		if d.engine.Ring(c); d.Phase() == Polling { // otherwise the background owner may have missed the doorbell
			return
		}
	}
	if !d.token.TryOwn(Poster) {
		d.engine.Ring(c)
		if d.token.TryOwn(Poster) { // the owner may have given the engine up before it saw the doorbell
			d.engine.Poll(Now())
			d.wake()
			d.disown(Poster)
		}
		return
	}
	if d.sleeping() { // poll, because the engine's time is old and the post may set a deadline before the end of the sleep
		d.engine.Poll(Now())
		d.wake()
	}
	if poll, active := d.engine.Kick(c); poll {
		if active && d.group.asleep.Load() == 0 { // the caller takes completions, so it will poll; a caller that only reads its memory will not
			d.polls++
		}
		d.engine.Poll(Now())
		d.wake()
	}
	d.disown(Poster)
}

// pollsSoon reports whether the background owner polls for several waiters and has a processor.
func (d *Driver) pollsSoon() bool {
	return d.group.shared.Load() && d.Phase() == Polling && Now().Sub(wire.Time(d.servedAt.Load())) < starvedAfter
}

// The method Do takes the engine, polls it, calls f, polls the engine again, and gives the engine up. If the driver is
// closed, it returns false and does not call f.
func (d *Driver) Do(f func()) bool {
	if !d.Own() {
		return false
	}
	d.engine.Poll(Now()) // before f, which may end a connection whose posts have not been sent yet
	f()
	d.engine.Poll(Now())
	d.wake()
	d.Disown()
	return true
}

// The method With takes the engine, calls f, and gives the engine up. Unlike Do, it does not poll, so f must send
// nothing and set no deadline. If the driver is closed, it returns false and does not call f.
func (d *Driver) With(f func()) bool {
	if !d.Own() {
		return false
	}
	f()
	d.Disown()
	return true
}

// barrier waits until the goroutine that owned the engine at the time of the call has given the engine up.
func (d *Driver) barrier() {
	if d.Own() {
		d.Disown()
	}
}

// The method close stops the background owner and ends every connection. It waits up to closeLinger for the peers to
// confirm the end of the connections. Then it keeps the token for ever, so that calls in progress do not use the closed
// link.
func (d *Driver) close() {
	d.halt()
	d.Own()
	for end := Now().Add(closeLinger); d.engine.Connections() > 0; {
		now := Now()
		if now > end {
			break
		}
		if !d.engine.Poll(now) {
			d.link.Wait(min(max(d.engine.Next().Sub(now), 0), end.Sub(now)))
		}
	}
	d.engine.Close()
	d.token.Become(Closed)
}
