package fairqueue

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// Flows are added, take buffers, finish, stall and are removed in any order. Some take the buffer that they were given
// late or never. After each step the counts of the queue must agree with the flows, and no buffer may be lost. A flow
// that was given a buffer must get it.
func TestRandomFlows(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		buffers := 1 + r.IntN(12)
		b := newBench(t, buffers)
		for step := range 3000 {
			b.now = b.now.Add(time.Duration(r.IntN(20)) * time.Millisecond)
			id := 1 + r.IntN(30)
			f := b.flows[id]
			switch k := r.IntN(20); {
			case f == nil:
				b.add(id, netip.AddrFrom4([4]byte{10, 0, byte(r.IntN(3)), byte(r.IntN(4))}).String())
			case k == 0:
				if f.holds {
					b.Put()
				}
				b.Remove(f, 0, b.now)
				delete(b.flows, id)
				b.serve()
			case f.holds:
				if k < 8 || b.TimeLeft(f, 0, b.now) <= 0 {
					b.release(f)
				}
				if next := b.Give(); k%2 == 0 && next != 0 && !b.begin(next) {
					t.Fatalf("seed %d, step %d: flow %d does not get what it was given", seed, step, next)
				}
			default:
				b.begin(id)
			}
			b.check()
			if got := int(b.Free()) + b.Held(); got != buffers {
				t.Fatalf("seed %d, step %d: %d buffers, want %d", seed, step, got, buffers)
			}
		}
		for id, f := range b.flows {
			if f.holds {
				b.Put()
			}
			b.Remove(f, 0, b.now)
			delete(b.flows, id)
		}
		if b.Peers() != 0 || b.Waiting() != 0 || int(b.Free()) != buffers {
			t.Errorf("seed %d: %d peers, %d wait, %d of %d buffers free in the end", seed, b.Peers(), b.Waiting(), b.Free(), buffers)
		}
	}
}

// Waiting, being served and finishing must not allocate.
func TestNoAllocation(t *testing.T) {
	b := newBench(t, 1)
	b.add(1, "10.0.0.1")
	b.add(2, "10.0.1.1")
	b.begin(1)
	if n := testing.AllocsPerRun(100, func() {
		b.begin(2)
		b.finish(1)
		b.begin(1)
		b.finish(2)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
