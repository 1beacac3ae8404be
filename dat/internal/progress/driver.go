package progress

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Engine is what a driver needs of a wire.Engine. The owner calls these methods; Ring may be called by any goroutine.
type Engine interface {
	Poll(now wire.Time) (busy bool)
	Next() wire.Time
	Kick(c *wire.Conn) (poll, active bool)
	Ring(c *wire.Conn)
	Connections() int
	Close()
}

// Link is what a driver needs of a link.Link: a sleep that packets and Wake end.
type Link interface {
	Wait(limit time.Duration)
	Wake()
}

// Driver runs one engine: in the calls of whoever posts or waits, and in a goroutine of its own when nobody does. It is
// embedded by value and not copied.
type Driver struct {
	engine Engine
	token  *wire.Token
	link   Link

	polls uint64 // by callers that will poll again; guarded by the token
	empty int    // polls by callers in a row that found nothing; guarded by the token

	phase    atomic.Uint32 // Phase of the background owner
	handover chan struct{} // a caller parks: take over
	stop     chan struct{}
	done     chan struct{}
}

// Init makes d the driver of an engine with a token and a link. The background owner begins with Group.Start.
func (d *Driver) Init(e Engine, token *wire.Token, l Link) {
	d.engine, d.token, d.link = e, token, l
	d.handover, d.stop, d.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
}

// Phase is what the background owner does at the moment of the call.
func (d *Driver) Phase() Phase { return Phase(d.phase.Load()) }

// Polls counts the polls of callers that will poll again. The owner calls it.
func (d *Driver) Polls() uint64 { return d.polls }

// Own waits for the ownership, in the role Control, and reports false on a driver that is closed. Owners hold the token
// for one poll, so the wait is short.
func (d *Driver) Own() bool {
	for !d.token.TryOwn(Control) {
		if d.token.Role() == Closed {
			return false
		}
		runtime.Gosched()
	}
	return true
}

// Disown gives the ownership of Own up, and sees to what was rung for meanwhile. The owner calls it.
func (d *Driver) Disown() { d.disown(Control) }

// disown gives the ownership up and does what others asked for meanwhile. It reports whether that was something.
func (d *Driver) disown(as wire.Role) (polled bool) {
	for d.token.Disown() {
		if !d.token.TryOwn(as) {
			return polled // the new owner sees to it
		}
		d.engine.Poll(Now())
		d.wake()
		polled = true
	}
	return polled
}

// poll drives the engine once, unless it is owned. It reports whether that moved packets, and whether the calling thread
// is to yield.
func (d *Driver) poll(now wire.Time, as wire.Role) (busy, yield bool) {
	if !d.token.TryOwn(as) {
		return false, false
	}
	d.polls++
	busy = d.engine.Poll(now)
	if d.sleeping() && (busy || d.engine.Next() <= now) {
		d.wake()
	}
	yield = d.fruitless(busy)
	d.disown(as)
	return busy, yield
}

// Post has the engine look at what was posted on c, at once unless it is owned: then its owner looks.
func (d *Driver) Post(c *wire.Conn) {
	if !d.token.TryOwn(Poster) {
		d.engine.Ring(c)
		if d.token.TryOwn(Poster) { // the owner may not have seen the ring
			d.engine.Poll(Now())
			d.wake()
			d.disown(Poster)
		}
		return
	}
	if d.sleeping() { // the engine's time is old, and a deadline may become nearer than it was
		d.engine.Poll(Now())
		d.wake()
	}
	if poll, active := d.engine.Kick(c); poll {
		if active { // a caller that takes no completions may look at nothing but the memory that a peer writes
			d.polls++
		}
		d.engine.Poll(Now())
		d.wake()
	}
	d.disown(Poster)
}

// Do calls f with the engine owned, and polls before and after. It reports false, and does not call f, on a driver that
// is closed.
func (d *Driver) Do(f func()) bool {
	if !d.Own() {
		return false
	}
	d.engine.Poll(Now()) // f may end the connection of what was posted
	f()
	d.engine.Poll(Now())
	d.wake()
	d.Disown()
	return true
}

// barrier returns when the owner at the call has given the engine up.
func (d *Driver) barrier() {
	if d.Own() {
		d.Disown()
	}
}

// close stops the background owner and ends every connection, giving peers closeLinger to confirm. It keeps the
// ownership, so that calls that are still on their way do not reach a closed link.
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
