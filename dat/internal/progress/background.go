package progress

import (
	"time"

	"github.com/datxdp/datxdp/wire"
)

// background is the goroutine that drives an engine while no caller does.
type background struct {
	*Driver
	polls  uint64        // of the driver at the last turn
	busyAt wire.Time     // when it last polled anything, or took over
	look   *time.Timer   // the next look at an engine that callers drive
	pause  time.Duration // to the look after that
}

// turn is what the background owner found at an engine.
type turn struct {
	driven bool      // callers have polled it since the last turn, or own it
	busy   bool      // the background owner's poll found something
	next   wire.Time // when the engine is to be polled again
}

// run is the background owner, until halt.
func (d *Driver) run() {
	defer close(d.done)
	b := background{Driver: d, look: time.NewTimer(lookInterval), pause: lookInterval, busyAt: Now()}
	defer b.look.Stop()
	for !over(d.stop) {
		now := Now()
		t := b.turn(now)
		switch d.Phase() {
		case Watching:
			b.watch(now)
		case Sleeping:
			b.pause = lookInterval
			b.sleep(t.next)
		default:
			if t.busy {
				b.busyAt, b.pause = now, lookInterval
			}
			yield(Background, t.busy, false)
		}
	}
	d.phase.Store(uint32(Stopped))
}

// turn polls the engine unless callers drive it, and enters the phase that follows. The phase is visible before the token
// is free: a caller that makes a deadline nearer afterwards finds Sleeping, and wakes the link.
func (b *background) turn(now wire.Time) (t turn) {
	if !b.token.TryOwn(Background) {
		b.phase.Store(uint32(Watching))
		return turn{driven: true}
	}
	if t.driven = b.Driver.polls != b.polls; t.driven {
		b.polls = b.Driver.polls
	} else {
		t.busy = b.engine.Poll(now)
		t.next = b.engine.Next()
	}
	b.phase.Store(uint32(t.phase(now, now.Sub(b.busyAt))))
	if b.disown(Background) && !t.driven { // there may be a deadline before next
		t.busy = true
		b.phase.Store(uint32(Polling))
	}
	return t
}

// phase is what follows a turn at now, so long after anything happened.
func (t turn) phase(now wire.Time, quiet time.Duration) Phase {
	switch {
	case t.driven:
		return Watching
	case t.busy, t.next <= now, quiet < idleSpin:
		return Polling
	default:
		return Sleeping
	}
}

// watch waits for the next look, or for a caller that parks: then the engine counts as not driven.
func (b *background) watch(now wire.Time) {
	b.look.Reset(b.pause)
	b.pause = min(b.pause+b.pause/16, lookMost)
	select {
	case <-b.stop:
	case <-b.look.C:
	case <-b.handover:
		b.busyAt = now
		if b.Own() {
			b.polls = b.Driver.polls
			b.Disown()
		}
	}
}

// sleep waits in the link for a packet, a deadline or a Wake. A Wake that comes before the Wait ends it at once.
func (b *background) sleep(next wire.Time) {
	if wait := next.Sub(Now()); wait > 0 {
		b.link.Wait(wait)
	}
	b.phase.Store(uint32(Polling))
}
