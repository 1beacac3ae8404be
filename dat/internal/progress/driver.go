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

// Driver runs one engine: in the calls of goroutines that post or wait and, when there are none, in a goroutine of
// its own. Embed it by value and do not copy it.
type Driver struct {
	engine Engine
	token  *wire.Token
	link   Link

	polls uint64 // polls by active pollers; guarded by the token
	empty int    // consecutive empty polls by callers; guarded by the token

	phase    atomic.Uint32 // Phase of the background owner
	handover chan struct{} // a token tells the background owner that a caller parks
	stop     chan struct{} // closed by halt
	done     chan struct{} // closed at the end of run
}

// Init makes d the driver of an engine with its token and link. The background owner starts with Group.Start.
func (d *Driver) Init(e Engine, token *wire.Token, l Link) {
	d.engine, d.token, d.link = e, token, l
	d.handover, d.stop, d.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
}

// Phase returns the current phase of the background owner.
func (d *Driver) Phase() Phase { return Phase(d.phase.Load()) }

// Polls returns the number of polls by active pollers. Only the owner may call it.
func (d *Driver) Polls() uint64 { return d.polls }

// Own waits until the caller owns the engine, in the role Control. It returns false if the driver is closed. An owner
// holds the token for one poll, so the wait is short.
func (d *Driver) Own() bool {
	for !d.token.TryOwn(Control) {
		if d.token.Role() == Closed {
			return false
		}
		runtime.Gosched()
	}
	return true
}

// Disown gives up an engine that Own has taken, after processing the posts that rang meanwhile.
func (d *Driver) Disown() { d.disown(Control) }

// disown gives the engine up. If a doorbell rang while the engine was owned, disown takes the engine again and polls,
// so that no post is left behind. It reports whether it polled.
func (d *Driver) disown(as wire.Role) (polled bool) {
	for d.token.Disown() {
		if !d.token.TryOwn(as) {
			return polled // the new owner polls
		}
		d.engine.Poll(Now())
		d.wake()
		polled = true
	}
	return polled
}

// poll polls the engine once, unless it is owned. busy reports whether packets moved, yield whether the calling
// thread is to yield.
func (d *Driver) poll(now wire.Time, as wire.Role) (busy, yield bool) {
	if !d.token.TryOwn(as) {
		return false, false
	}
	d.polls++
	busy = d.engine.Poll(now)
	if d.sleeping() && (busy || d.engine.Next() <= now) {
		d.wake()
	}
	yield = d.countEmpty(busy)
	d.disown(as)
	return busy, yield
}

// Post makes the engine process what was posted on c: immediately or, if the engine is owned, by its owner.
func (d *Driver) Post(c *wire.Conn) {
	if !d.token.TryOwn(Poster) {
		d.engine.Ring(c)
		if d.token.TryOwn(Poster) { // the owner may have given the engine up before it saw the ring
			d.engine.Poll(Now())
			d.wake()
			d.disown(Poster)
		}
		return
	}
	if d.sleeping() { // the engine's time is old, and the post may need an earlier deadline than the sleep
		d.engine.Poll(Now())
		d.wake()
	}
	if poll, active := d.engine.Kick(c); poll {
		if active { // counts as driving: a caller may post and read memory that peers write, and never poll
			d.polls++
		}
		d.engine.Poll(Now())
		d.wake()
	}
	d.disown(Poster)
}

// Do calls f while it owns the engine, and polls before and after f. It returns false, and does not call f, if the
// driver is closed.
func (d *Driver) Do(f func()) bool {
	if !d.Own() {
		return false
	}
	d.engine.Poll(Now()) // before f, which may end the connection of a post that has not left yet
	f()
	d.engine.Poll(Now())
	d.wake()
	d.Disown()
	return true
}

// With calls f while it owns the engine, and does not poll: f sends nothing and moves no deadline. It returns false,
// and does not call f, if the driver is closed.
func (d *Driver) With(f func()) bool {
	if !d.Own() {
		return false
	}
	f()
	d.Disown()
	return true
}

// barrier returns when the owner at the time of the call has given the engine up.
func (d *Driver) barrier() {
	if d.Own() {
		d.Disown()
	}
}

// close stops the background owner and ends every connection. Peers have closeLinger to confirm the end. The driver
// then keeps the token, so that calls still in progress do not use a closed link.
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
