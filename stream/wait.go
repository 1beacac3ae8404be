package stream

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// A blocker is a call that may block: Read, Write or Close. One blocked call of a connection, the leader, waits in the
// event dispatcher and handles the events for all blocked calls. The other blocked calls, the followers, wait for their
// channel. When the leader returns, it wakes a follower, which becomes the leader. Conn.mu guards the fields.
type blocker struct {
	deadline time.Time // zero for none
	blocked  bool
	wake     chan struct{} // capacity 1
}

// blockers are the calls of a connection that may block. Conn.mu guards the fields.
type blockers struct {
	read, write, closing blocker
	leader               *blocker  // the one inside EVD.Wait; nil for none
	event                dat.Event // of the leader, and of drain while there is no leader
	nudged               bool      // a software event is queued
	watched              bool      // an event that no call waits for starts agent
	agent                func(*dat.EVD)
}

func (b *blockers) all() [3]*blocker { return [3]*blocker{&b.read, &b.write, &b.closing} }

// expired reports whether the deadline has passed.
func (b *blocker) expired() bool { return !b.deadline.IsZero() && !time.Now().Before(b.deadline) }

// rest returns the time until the deadline; negative means for ever.
func (b *blocker) rest() time.Duration {
	if b.deadline.IsZero() {
		return -1
	}
	return max(0, time.Until(b.deadline))
}

// usable returns the error of a call that cannot begin or go on.
func (c *Conn) usable(b *blocker) error {
	switch {
	case c.closed():
		return net.ErrClosed
	case b.expired():
		return os.ErrDeadlineExceeded
	}
	return nil
}

// await waits until the condition of a call may have changed. mu is held, but not while await waits.
func (c *Conn) await(b *blocker) {
	was := c.phase
	c.drain()
	c.flush()
	if c.ready(b) || c.phase != was { // a dial waits for the phase
		return
	}
	b.blocked = true
	if c.leader == nil {
		c.lead(b)
	} else {
		c.follow(b)
	}
	b.blocked = false
}

// ready reports whether a call can go on.
func (c *Conn) ready(b *blocker) bool {
	if c.phase == ended {
		return true
	}
	switch b {
	case &c.read:
		return c.in.received > c.in.consumed || c.in.ended || c.in.closed || c.closed()
	case &c.write:
		return c.out.room() > 0 || c.out.end || c.closed()
	default:
		return c.out.acknowledged()
	}
}

// lead waits for an event of the connection, and handles what has come.
func (c *Conn) lead(b *blocker) {
	c.leader = b
	rest := b.rest()
	c.mu.Unlock()
	_, err := c.evd.Wait(rest, 1, &c.event)
	c.mu.Lock()
	c.leader = nil
	if err == nil {
		c.handle(&c.event)
	} else if !errors.Is(err, dat.ErrTimeoutExpired) {
		c.fail(err)
	}
	c.drain()
	c.flush()
	for _, other := range c.blockers.all() {
		if other != b && other.blocked && c.ready(other) {
			other.signal()
		}
	}
}

// follow waits for the leader.
func (c *Conn) follow(b *blocker) {
	rest := b.rest()
	c.mu.Unlock()
	defer c.mu.Lock()
	if rest < 0 {
		<-b.wake
		return
	}
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-b.wake:
	case <-t.C:
	}
}

func (b *blocker) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// handOver is called at the end of the call b, which may have been the leader. If another call is blocked, that call
// becomes the leader. Otherwise the agent sends the remaining bytes.
func (c *Conn) handOver(b *blocker) {
	if c.leader != nil {
		return
	}
	for _, other := range c.blockers.all() {
		if other != b && other.blocked {
			other.signal()
			return
		}
	}
	c.watchIfDue()
}

// watchIfDue lets the agent handle the next events if bytes wait to be sent, or are to be discarded.
func (c *Conn) watchIfDue() {
	if due := c.leader == nil && c.needsAgent(); due != c.watched {
		c.watched = due
		if due {
			c.watch()
		} else {
			c.unwatch()
		}
	}
}

// needsAgent reports whether the events of a stream need the agent while no call handles them.
func (c *Conn) needsAgent() bool {
	switch c.life {
	case inUse:
		return c.phase != ended && (!c.out.idle() || c.in.closed && !c.in.ended)
	case pending, orphan:
		return true
	default:
		return false
	}
}

// watch makes the next event, or a queued one, start the agent. If the adapter is closed, the stream ends.
func (c *Conn) watch() {
	c.fail(c.cno.ModifyAgent(c.agent))
	_ = c.evd.Enable()
}

// unwatch ends watch. A stream whose setup has failed may have no objects.
func (c *Conn) unwatch() {
	_ = c.evd.Disable()
	_ = c.cno.ModifyAgent(nil)
}

// proceed is the agent. It sends what may leave by now. The adapter calls it without a dispatcher when it is closed.
func (c *Conn) proceed(evd *dat.EVD) {
	if then := c.step(evd); then != nil {
		then()
	}
}

// step is proceed, without what must be done without mu at the end of a part of the stream's life: it returns that. A
// trigger starts an agent once: step sets it again before it looks for events, so that it misses none.
func (c *Conn) step(evd *dat.EVD) (then func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life == freed || !c.watched {
		return nil
	}
	if evd == nil {
		c.fail(dat.ErrAbort)
	}
	c.fail(c.cno.ModifyAgent(c.agent))
	if c.leader != nil { // the call that leads does this
		return nil
	}
	c.drain()
	c.flush()
	switch {
	case c.life == pending && c.phase != connecting:
		return c.settle()
	case c.life == orphan && c.delivered():
		c.adopt()
		return c.free
	}
	c.handOver(nil)
	return nil
}

// interrupt ends the waiting of a blocked call, which then looks at its condition again.
func (c *Conn) interrupt(b *blocker) {
	switch {
	case c.leader == b && !c.nudged:
		c.nudged = c.evd.PostSE(nil) == nil // without room the call has an event to take
	case b.blocked:
		b.signal()
	}
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadline(t, &c.read, &c.write) }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(t, &c.read) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(t, &c.write) }

func (c *Conn) setDeadline(t time.Time, all ...*blocker) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed() {
		return c.opError("set", net.ErrClosed)
	}
	for _, b := range all {
		b.deadline = t
		c.interrupt(b)
	}
	return nil
}
