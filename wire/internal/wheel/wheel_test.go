package wheel

import (
	"math/rand/v2"
	"testing"
)

// Each timer must fire once, at its deadline or at most one tick later, however far each Advance moves the clock.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := int64(r.Uint64N(1 << 50))
		w := New(now)
		due := map[int32]int64{}
		for range 400 {
			switch id := int32(r.IntN(40)); r.IntN(4) {
			case 0, 1:
				at := now + int64(r.Uint64N(1<<r.IntN(46)+1))
				w.Set(id, at)
				due[id] = min(max(at, now&^(Tick-1)+1), now+reach<<tickBits)
			case 2:
				w.Stop(id)
				delete(due, id)
			default:
				now += int64(r.Uint64N(1<<r.IntN(45) + 1))
				w.Advance(now, 1<<30, func(id int32) {
					at, ok := due[id]
					if !ok || at > now+Tick {
						t.Fatalf("seed %d: timer %d fired at %d, due %d (%v)", seed, id, now, at, ok)
					}
					delete(due, id)
				})
			}
			checkModel(t, seed, w, due, now)
		}
	}
}

func checkModel(t *testing.T, seed uint64, w *Wheel, due map[int32]int64, now int64) {
	t.Helper()
	if w.Len() != len(due) {
		t.Fatalf("seed %d: %d armed, want %d", seed, w.Len(), len(due))
	}
	first := int64(1) << 62
	for id, at := range due {
		first = min(first, at)
		if at+2*Tick <= now {
			t.Fatalf("seed %d: timer %d due %d missed at %d", seed, id, at, now)
		}
	}
	if next, ok := w.Next(); ok != (len(due) > 0) || ok && next > first+2*Tick {
		t.Fatalf("seed %d: Next = %d %v, first due %d", seed, next, ok, first)
	}
}

func TestRearmWithinFire(t *testing.T) {
	w := New(0)
	w.Set(3, 10)
	n := 0
	for now := int64(0); now < 100*Tick; now += Tick {
		w.Advance(now, 1<<30, func(id int32) { n++; w.Set(id, now) })
	}
	if n < 90 || n > 101 {
		t.Fatalf("a timer set anew for now fired %d times in 100 ticks", n)
	}
}

func BenchmarkSetStop(b *testing.B) {
	w := New(0)
	for b.Loop() {
		w.Set(1, 200_000)
		w.Stop(1)
	}
}

// Advance must fire at most limit timers, stop the clock there, and continue in the next call.
func TestAdvanceStops(t *testing.T) {
	w := New(0)
	for id := range int32(100) {
		w.Set(id, int64(id%2+1)*Tick)
	}
	fired := 0
	for call := range 4 {
		w.Advance(10*Tick, 30, func(int32) { fired++ })
		if want := min(30*(call+1), 100); fired != want {
			t.Fatalf("%d timers fired in %d calls, want %d", fired, call+1, want)
		}
		if at, ok := w.Next(); ok && at > 10*Tick {
			t.Errorf("after call %d the next timer is due at %d", call+1, at)
		}
	}
	if w.Len() != 0 {
		t.Errorf("%d timers left", w.Len())
	}
}
