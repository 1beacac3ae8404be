package progress

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/datxdp/datxdp/wire"
)

func TestPhaseAfterPass(t *testing.T) {
	const now = wire.Time(1000)
	for name, c := range map[string]struct {
		pass  pass
		quiet time.Duration
		want  Phase
	}{
		"callers drive":             {pass{driven: true}, time.Hour, Watching},
		"packets":                   {pass{busy: true, next: Forever}, time.Hour, Polling},
		"a deadline that is over":   {pass{next: now}, time.Hour, Polling},
		"nothing for a short time":  {pass{next: Forever}, idleSpin - 1, Polling},
		"nothing for a longer time": {pass{next: now + 1}, idleSpin, Sleeping},
		"several goroutines wait":   {pass{next: Forever, shared: true}, waitSpin - 1, Polling},
		"they wait for longer":      {pass{next: Forever, shared: true}, waitSpin, Sleeping},
	} {
		b := background{Driver: &newFake().Driver}
		if got := c.pass.phase(b.spin(&c.pass, now), now, c.quiet); got != c.want {
			t.Errorf("%s: phase %d, want %d", name, got, c.want)
		}
	}
}

// TestBackgroundServes: the background owner serves a packet immediately, goes on polling for idleSpin, and then
// sleeps. The background owner wakes up for each deadline.
func TestBackgroundServes(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		began, was := Now(), x.polls(Background)
		x.arrive()
		x.settle()
		if x.packets.Load() != 0 {
			t.Error("the packet was not polled")
		}
		spun := Now().Sub(began)
		if spun < idleSpin || spun > idleSpin+10*pollTime {
			t.Errorf("it polls for %v after a packet, want %v", spun, idleSpin)
		}
		if n := x.polls(Background) - was; n < int(idleSpin/pollTime) {
			t.Errorf("%d polls in %v", n, spun)
		}
		at := Now().Add(5 * time.Millisecond)
		x.next.Store(int64(at))
		x.Wake()
		x.settle()
		time.Sleep(6 * time.Millisecond)
		x.settle()
		if x.Next() != Forever {
			t.Error("nobody polled at the deadline")
		}
		if idle := Now().Sub(at); idle < time.Millisecond || x.last[Background].Load() > int64(at.Add(2*idleSpin)) {
			t.Errorf("it polls on %v after the deadline", wire.Time(x.last[Background].Load()).Sub(at))
		}
	})
}

// TestBackgroundWatches: while callers poll, the background owner does not poll. It only checks, at intervals of up to
// maxCheckInterval, whether callers still poll. When callers stop without parking, the background owner takes over at
// the second check at the latest.
func TestBackgroundWatches(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		x.group.Poll()
		x.Wake() // the background owner sees the poll and begins to watch
		synctest.Wait()
		was := x.polls(Background)
		for range 10_000 {
			x.group.Poll()
			time.Sleep(10 * time.Microsecond)
		}
		if x.Phase() != Watching || x.polls(Background) != was {
			t.Errorf("phase %d, %d polls in the background", x.Phase(), x.polls(Background)-was)
		}
		began := Now()
		for x.polls(Background) == was {
			time.Sleep(100 * time.Microsecond)
		}
		if took := Now().Sub(began); took < maxCheckInterval/2 || took > 2*maxCheckInterval+time.Millisecond {
			t.Errorf("it takes over after %v, want up to two looks of %v", took, maxCheckInterval)
		}
	})
}

// The background owner finds that another goroutine owns the engine. If that goroutine will poll again (role Poller or
// Waiter), the background owner only watches. If it may not poll again (role Poster or Control), the background owner
// polls as soon as the engine is free, unless callers have driven the engine before: then it goes on watching.
func TestBackgroundFindsOwner(t *testing.T) {
	for _, c := range []struct {
		role        wire.Role
		phase, want Phase
	}{
		{Poller, Polling, Watching}, {Waiter, Polling, Watching}, {Poster, Polling, Polling}, {Control, Polling, Polling},
		{Poster, Watching, Watching}, {Control, Watching, Watching},
	} {
		inVirtualTime(t, func(t *testing.T) {
			x := newFake()
			b := background{Driver: &x.Driver}
			x.phase.Store(uint32(c.phase))
			x.packets.Store(1)
			if !x.token.TryOwn(c.role) {
				t.Fatal("the engine is owned")
			}
			if p := b.runPass(Now()); p.owned != (c.role == Poster || c.role == Control) {
				t.Errorf("%+v: owned: %v", c, p.owned)
			}
			if x.Phase() != c.want || x.polls(Background) != 0 {
				t.Errorf("%+v: phase %d; %d polls", c, x.Phase(), x.polls(Background))
			}
			x.Disown()
			if b.runPass(Now()); x.packets.Load() != 0 {
				t.Errorf("%+v: the packet was not polled", c)
			}
		})
	}
}

// A caller parks, and another goroutine posts at that moment. The background owner polls as soon as the engine is free,
// without waiting for another check.
func TestPostDuringHandOver(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		x := newFake()
		b := background{Driver: &x.Driver, check: time.NewTimer(time.Hour), pause: time.Hour}
		x.phase.Store(uint32(Watching))
		x.handOver()
		b.watch(Now())
		if !x.token.TryOwn(Poster) {
			t.Fatal("the engine is owned")
		}
		if p := b.runPass(Now()); p.driven || x.Phase() != Polling {
			t.Errorf("the result is %+v, phase %d", p, x.Phase())
		}
		x.Disown()
	})
}

// TestParkHandsOver: when a waiter parks, the background owner takes over without waiting for its next check.
func TestParkHandsOver(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		x.group.Poll()
		x.Wake()
		synctest.Wait() // the background owner watches now
		was, began := x.polls(Background), Now()
		if x.group.Wait(newEvent(), began.Add(waitSpin+waitSpin/2), nil) != TimedOut {
			t.Error("the wait did not time out")
		}
		if x.polls(Background) == was {
			t.Error("the background owner did not poll while the waiter was parked")
		}
	})
}

// TestWakeBeforeSleep: a call sets an earlier deadline after the background owner has decided to sleep, and before it
// sleeps. The background owner does not miss that deadline.
func TestWakeBeforeSleep(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		x.due = true
		x.before = func() {
			x.before = func() {}
			x.next.Store(int64(Now().Add(time.Millisecond)))
			x.Post(nil)
		}
		x.arrive() // the background owner polls and is about to sleep again
		time.Sleep(2 * time.Millisecond)
		x.settle()
		if x.Next() != Forever {
			t.Error("nobody polled at the deadline")
		}
	})
}

// Close stops the background owner, gives peers time to confirm, and keeps the ownership.
func TestClose(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		x := newFake()
		x.group.Start()
		x.settle()
		x.conns.Store(1)
		time.AfterFunc(3*time.Millisecond, func() {
			x.conns.Store(0)
			x.arrive()
		})
		began := Now()
		x.group.Close()
		if took := Now().Sub(began); took < 3*time.Millisecond || took > 4*time.Millisecond {
			t.Errorf("closing took %v, the peer 3 ms", took)
		}
		if !x.closed || x.Phase() != Stopped || x.token.Role() != Closed {
			t.Errorf("closed %v, phase %d, role %d", x.closed, x.Phase(), x.token.Role())
		}
		if x.Own() || x.Do(func() { t.Error("Do calls") }) || x.group.Halt(func() { t.Error("Halt calls") }) {
			t.Error("a closed driver was owned")
		}
		polls := x.polls(Poller)
		x.Post(nil)
		x.group.Poll()
		x.group.Barrier()
		if x.polls(Poller) != polls || x.polls(Poster) != 0 {
			t.Error("a closed engine was polled")
		}
	})
}

// Peers that do not confirm keep Close for closeLinger, however many drivers have such peers.
func TestCloseLingers(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		x, y := newFake(), newFake()
		x.group.Add(&y.Driver)
		x.group.Start()
		x.settle()
		x.conns.Store(1)
		y.conns.Store(1)
		began := Now()
		x.group.Close()
		if took := Now().Sub(began); took < closeLinger || took > closeLinger+time.Millisecond {
			t.Errorf("closing took %v, want %v", took, closeLinger)
		}
	})
}
