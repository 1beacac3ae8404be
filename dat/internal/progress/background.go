package progress

import (
	"time"

	"github.com/datxdp/datxdp/wire"
)

// background is the background owner: the goroutine that polls an engine while no caller does.
type background struct {
	*Driver
	polls  uint64        // Driver.polls at the last turn
	busyAt wire.Time     // when its polls last moved packets, or it took over from callers
	check  *time.Timer   // fires at the next check of an engine that callers drive
	pause  time.Duration // from that check to the one after
}

// turn is one pass of the background owner's loop.
type turn struct {
	driven bool      // callers own the engine, or have polled it since the last turn
	busy   bool      // the background owner's poll moved packets
	next   wire.Time // the engine's next deadline
}

// run is the loop of the background owner. It ends after halt.
func (d *Driver) run() {
	defer close(d.done)
	b := background{Driver: d, check: time.NewTimer(checkInterval), pause: checkInterval, busyAt: Now()}
	defer b.check.Stop()
	for !received(d.stop) {
		now := Now()
		t := b.turn(now)
		switch d.Phase() {
		case Watching:
			b.watch(now)
		case Sleeping:
			b.pause = checkInterval
			b.sleep(t.next)
		default:
			if t.busy {
				b.busyAt, b.pause = now, checkInterval
			}
			yield(Background, t.busy, false)
		}
	}
	d.phase.Store(uint32(Stopped))
}

// turn polls the engine unless callers drive it, and sets the next phase. It sets the phase before it gives up the
// token. Otherwise a caller could set an earlier deadline, see the old phase, and not wake the background owner,
// which would then sleep past that deadline.
func (b *background) turn(now wire.Time) (t turn) {
	if !b.token.TryOwn(Background) {
		if b.token.Role() == Control { // it gives the engine up soon, and nobody polls after it
			b.phase.Store(uint32(Polling))
			return turn{busy: true}
		}
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
	if b.disown(Background) && !t.driven { // disown polled, so t.next is out of date
		t.busy = true
		b.phase.Store(uint32(Polling))
	}
	return t
}

// phase returns the phase after a turn at time now. quiet is the time since packets last moved.
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

// watch waits for the next check, or for a caller that parks. After a caller has parked, b.polls is brought up to
// date: the next turn then sees no new polls by callers and polls itself.
func (b *background) watch(now wire.Time) {
	b.check.Reset(b.pause)
	b.pause = min(b.pause+b.pause/16, maxCheckInterval)
	select {
	case <-b.stop:
	case <-b.check.C:
	case <-b.handover:
		b.busyAt = now
		if b.Own() {
			b.polls = b.Driver.polls
			b.Disown()
		}
	}
}

// sleep waits in the link for a packet, the deadline next or Link.Wake. A Wake before the Wait ends it immediately.
func (b *background) sleep(next wire.Time) {
	if wait := next.Sub(Now()); wait > 0 {
		b.link.Wait(wait)
	}
	b.phase.Store(uint32(Polling))
}
