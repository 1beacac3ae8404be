package progress

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/park"
	"github.com/datxdp/datxdp/wire"
)

// TestWith: With calls its function while it owns the engine, and does not poll.
func TestWithDoesNotPoll(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		was := x.polls(Control)
		if !x.With(func() {
			if x.token.Role() != Control {
				t.Errorf("role %d", x.token.Role())
			}
		}) {
			t.Error("the driver is closed")
		}
		if n := x.polls(Control) - was; n != 0 || x.token.Role() != Nobody {
			t.Errorf("%d polls, role %d afterwards", n, x.token.Role())
		}
	})
}

// Each call polls in its own role, and the engine has no owner afterwards.
func TestRoles(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.due = true
		ready := newEvent()
		for name, c := range map[string]struct {
			role  wire.Role
			polls int // at least
			call  func()
		}{
			"Post": {Poster, 1, func() { x.Post(nil) }},
			"Poll": {Poller, 1, func() { x.group.Poll() }},
			"Wait": {Waiter, 1, func() { x.group.Wait(ready, Now().Add(time.Microsecond), nil) }},
			"Do":   {Control, 2, func() { x.Do(func() {}) }},
		} {
			x.settle()
			was := x.polls(c.role)
			c.call()
			if n := x.polls(c.role) - was; n < c.polls {
				t.Errorf("%s: %d polls in role %d, want %d", name, n, c.role, c.polls)
			}
			if x.token.Role() != Nobody {
				t.Errorf("%s: the engine stays owned in role %d", name, x.token.Role())
			}
		}
		x.settle()
		if x.polls(Background) == 0 {
			t.Error("no poll in the background")
		}
	})
}

// TestPost: a post polls the engine once if work is due. If no work is due, it does not poll. If the background owner
// sleeps, the post begins with an additional poll, because the engine's time is outdated.
func TestPost(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		post := func(what string, polls, wakes int) {
			t.Helper()
			p, w := x.polls(Poster), int(x.wakes.Load())
			x.Post(nil)
			if p, w = x.polls(Poster)-p, int(x.wakes.Load())-w; p != polls || w != wakes {
				t.Errorf("%s: %d polls, %d wake-ups; want %d, %d", what, p, w, polls, wakes)
			}
		}
		x.settle()
		x.due = true
		post("the background owner sleeps", 2, 1)
		post("it does not", 1, 0)
		x.due = false
		post("nothing is due", 0, 0)
	})
}

// A post counts as a poll of a caller that drives only if the caller takes completions.
func TestPostOfActiveCaller(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		x.due = true
		was := x.Polls()
		x.Post(nil)
		if x.Polls() != was {
			t.Error("a post of a caller that takes no completions counts")
		}
		x.active = true
		x.Post(nil)
		if x.Polls() != was+1 {
			t.Error("a post of a caller that takes completions does not count")
		}
	})
}

// A post that finds the engine owned rings, and leaves the rest to the owner.
func TestPostWhileOwned(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		if !x.Own() {
			t.Fatal("no engine")
		}
		x.Post(nil)
		if x.rings.Load() != 1 || x.polls(Poster) != 0 || x.wakes.Load() != 0 {
			t.Errorf("%d rings, %d polls, %d wake-ups", x.rings.Load(), x.polls(Poster), x.wakes.Load())
		}
		x.Disown()
	})
}

// Halt owns every engine, or none.
func TestHalt(t *testing.T) {
	x, y := newFake(), newFake()
	var g Group
	g.Add(&x.Driver)
	g.Add(&y.Driver)
	if !g.Halt(func() {
		if x.token.Role() != Control || y.token.Role() != Control {
			t.Error("an engine is not owned")
		}
	}) {
		t.Error("Halt fails")
	}
	y.Own()
	y.token.Become(Closed)
	if g.Halt(func() { t.Error("Halt calls") }) {
		t.Error("Halt succeeds on a closed engine")
	}
	if x.token.Role() != Nobody {
		t.Error("an engine stays owned")
	}
}

// TestPollAfterOwner: a goroutine that polls in a loop finds the engine free at once, however long another one had it.
func TestPollAfterOwner(t *testing.T) {
	for _, owned := range []time.Duration{100 * time.Microsecond, 3 * time.Millisecond, 50 * time.Millisecond} {
		inVirtualTime(t, func(t *testing.T) {
			x := newFake()
			x.token.TryOwn(Control)
			free := Now().Add(owned)
			time.AfterFunc(owned, func() { x.disown(Control) })
			for x.polls(Poller) == 0 {
				x.group.Poll()
			}
			if late := wire.Time(x.last[Poller].Load()).Sub(free); late > 2*park.ShortestSleep {
				t.Errorf("owned for %v: the first poll is %v late", owned, late)
			}
		})
	}
}
