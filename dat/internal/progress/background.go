package progress

import (
	"time"

	"github.com/datxdp/datxdp/internal/park"
	"github.com/datxdp/datxdp/wire"
)

// background is the background owner: the goroutine that polls an engine while no caller polls it.
type background struct {
	*Driver
	polls    uint64        // value of Driver.polls at the last pass
	busyAt   wire.Time     // when a poll of the background owner last moved packets, or when it took over from callers
	check    *time.Timer   // in phase Watching: fires when the next check is due
	passes   emptyRun      // number of consecutive passes that moved no packets
	reviewed wire.Time     // when runPass last reset Group.shared
	pause    time.Duration // in phase Watching: interval between checks
	owned    park.Patience // of passes that find the engine owned
}

// pass is the result of one pass of the background owner's loop.
type pass struct {
	shared bool      // the background owner polls for several waiters
	owned  bool      // another goroutine owns the engine, and may not poll again
	driven bool      // callers own the engine, or have polled it since the last pass
	busy   bool      // the background owner's poll moved packets
	next   wire.Time // the engine's next deadline
}

// run is the loop of the background owner. halt ends it.
func (d *Driver) run() {
	defer close(d.done)
	b := background{Driver: d, check: time.NewTimer(checkInterval), pause: checkInterval, busyAt: Now()}
	defer b.check.Stop()
	for !received(d.stop) {
		now := Now()
		p := b.runPass(now)
		switch d.Phase() {
		case Watching:
			b.watch(now)
		case Sleeping:
			b.pause = checkInterval
			b.sleep(p.next)
		default:
			if p.busy {
				b.served.Store(b.served.Load() + 1)
				b.busyAt, b.pause = now, checkInterval
			}
			b.yield(&p)
			b.group.network.look(now, &b.group.cores)
		}
	}
	d.phase.Store(uint32(Stopped))
}

// yield lets other goroutines and threads run after a pass.
func (b *background) yield(p *pass) {
	yield(b.group, Background, p.busy, b.passes.count(p.busy, emptyPasses) || p.owned)
	if p.owned {
		b.owned.Wait()
		return
	}
	b.owned.Reset()
}

// runPass is one pass of the background owner's loop. It polls the engine, unless callers poll it. It also sets the
// phase of the background owner: Polling, Watching or Sleeping. It sets the phase before it gives up the token.
// Otherwise a caller could get the token, set an earlier deadline, and still see the old phase. That caller would not
// wake the background owner, which would then sleep past the deadline.
func (b *background) runPass(now wire.Time) (p pass) {
	if !b.token.TryOwn(Background) {
		switch b.token.Role() {
		case Poller, Waiter:
			b.phase.Store(uint32(Watching))
			if !b.token.TryOwn(Background) { // again, because a post may have rung the doorbell before it saw the phase
				return pass{driven: true}
			}
		default: // this owner may not poll again, so it changes nothing: goroutines that poll can post too
			watching := b.Phase() == Watching
			return pass{owned: true, driven: watching, busy: !watching}
		}
	}
	if now.Sub(b.reviewed) >= checkInterval {
		b.reviewed = now
		b.group.shared.Store(false) // if several goroutines still wait, one of them sets it again
	}
	p.shared = b.group.servesWaiters()
	p.driven = b.Driver.polls != b.polls && !p.shared
	b.polls = b.Driver.polls
	if !p.driven {
		if p.shared {
			b.servedAt.Store(int64(now))
		}
		p.busy = b.engine.Poll(now)
		p.next = b.engine.Next()
	}
	phase := p.phase(b.spin(&p, now), now, now.Sub(b.busyAt))
	if phase == Sleeping {
		b.group.shared.Store(false)
	}
	b.phase.Store(uint32(phase))
	if b.disown(Background) && !p.driven { // disown has polled, so p.next is out of date
		p.busy = true
		b.phase.Store(uint32(Polling))
	}
	return p
}

// spin returns how long the background owner polls without a packet before it sleeps.
func (b *background) spin(p *pass, now wire.Time) time.Duration {
	if p.shared {
		return b.group.Mode.waitSpin()
	}
	return b.group.spinTime(now, b.group.Mode.idleSpin())
}

// phase returns the phase after a pass at time now. The argument quiet is the time since packets last moved.
func (p pass) phase(spin time.Duration, now wire.Time, quiet time.Duration) Phase {
	switch {
	case p.driven:
		return Watching
	case p.busy, p.next <= now, quiet < spin:
		return Polling
	default:
		return Sleeping
	}
}

// The method watch waits until the next check is due or a caller parks. A caller that parks polls no longer, so the
// background owner must poll at once. In that case, watch ends phase Watching and sets b.polls to Driver.polls. So the
// next pass sees no new polls by callers, and polls the engine.
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
			b.phase.Store(uint32(Polling))
			b.Disown()
		}
	}
}

// The method sleep calls Link.Wait, which waits until a packet arrives, the given deadline is reached, or Link.Wake is
// called. If Link.Wake was called before Link.Wait, then Link.Wait returns immediately.
func (b *background) sleep(next wire.Time) {
	if wait := next.Sub(Now()); wait > 0 {
		b.link.Wait(wait)
	}
	b.phase.Store(uint32(Polling))
}
