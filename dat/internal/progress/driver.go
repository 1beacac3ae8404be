package progress

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Engine has the methods of wire.Engine that a driver uses. Only the owner may call them, except Ring, which any
// goroutine may call.
type Engine interface {
	Poll(now wire.Time) (busy bool)
	Next() wire.Time
	Kick(c *wire.Conn) (poll, active bool)
	Ring(c *wire.Conn)
	Connections() int
	Close()
}

// Link has the methods of link.Link that a driver uses. Wait sleeps until a packet arrives, Wake is called or the
// limit has passed.
type Link interface {
	Wait(limit time.Duration)
	Wake()
}

// Driver runs one engine. Goroutines that post or wait run the engine in their calls. While there are none, the
// background owner runs it. Embed a Driver by value and do not copy it.
type Driver struct {
	engine Engine
	token  *wire.Token
	link   Link

	polls uint64 // number of polls by callers, and of posts by callers that take completions; guarded by the token
	empty int    // number of consecutive empty polls by callers; guarded by the token

	phase    atomic.Uint32 // Phase of the background owner
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

// Polls returns a sum: the number of polls by callers, plus the number of polls for posts of callers that take
// completions. Only the owner may call Polls.
func (d *Driver) Polls() uint64 { return d.polls }

// Own waits until the caller owns the engine, in the role Control. The wait is short, because other owners hold the
// token for one poll. If the driver is closed, Own returns false.
func (d *Driver) Own() bool {
	for !d.token.TryOwn(Control) {
		if d.token.Role() == Closed {
			return false
		}
		runtime.Gosched()
	}
	return true
}

// Disown gives up the engine after a successful Own. If other goroutines have posted meanwhile, it polls first.
func (d *Driver) Disown() { d.disown(Control) }

// disown gives the engine up, for an owner in the given role. If a doorbell rang while the engine was owned, disown
// takes the engine again and polls, so that every post is processed. It reports whether it polled.
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

// poll polls the engine once in the given role, unless the engine is owned. The result busy is true if packets
// moved; the result yield is true if the calling thread should yield.
func (d *Driver) poll(now wire.Time, role wire.Role) (busy, yield bool) {
	if !d.token.TryOwn(role) {
		return false, false
	}
	d.polls++
	busy = d.engine.Poll(now)
	if d.sleeping() && (busy || d.engine.Next() <= now) {
		d.wake()
	}
	yield = d.countEmpty(busy)
	d.disown(role)
	return busy, yield
}

// Post makes the engine process what was posted on c. If the engine is owned, Post rings the doorbell, and the owner
// processes the post.
func (d *Driver) Post(c *wire.Conn) {
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
		if active { // the caller takes completions, so it will poll; a caller that only reads its memory will not
			d.polls++
		}
		d.engine.Poll(Now())
		d.wake()
	}
	d.disown(Poster)
}

// Do calls f while it owns the engine, and polls the engine before and after f. If the driver is closed, Do returns
// false and does not call f.
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

// With calls f while it owns the engine, and does not poll. So f must send nothing and set no deadline. If the driver
// is closed, With returns false and does not call f.
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

// close stops the background owner and ends every connection. It waits up to closeLinger for the peers to confirm the
// end. Then it keeps the token for ever, so that calls in progress do not use the closed link.
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
