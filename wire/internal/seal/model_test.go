package seal

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// flight is a packet in a network that loses, repeats and reorders.
type flight struct {
	packet  []byte
	phase   uint32
	counter uint64
}

// direction is one direction of a connection, and a model of its receiver.
type direction struct {
	from, to *Session
	network  []flight
	opened   map[uint64]bool
	highest  uint64 // plus 1
	results  [Exhausted + 1]int
}

// TestModel compares the results of Open with those that the model predicts, while packets are lost, repeated, delayed
// by more than a window, and changed, and the keys change every few hundred packets.
func TestModel(t *testing.T) {
	steps := 60000
	if testing.Short() {
		steps = 15000
	}
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 2))
		a, b := pair(t, Limits{Packets: 1 << 20, Update: 300, Age: time.Hour, Failures: 1 << 40})
		ends := []*direction{{from: a, to: b, opened: map[uint64]bool{}}, {from: b, to: a, opened: map[uint64]bool{}}}
		for range steps {
			d := ends[rng.IntN(2)]
			d.send(t, rng)
			if rng.IntN(4) > 0 {
				d.deliver(t, seed, rng)
			}
			if rng.IntN(50) == 0 {
				a.Expire(1, 1)
				b.Expire(1, 1)
			}
		}
		up, _ := a.Phases()
		total := ends[0].results
		for i, n := range ends[1].results {
			total[i] += n
		}
		if up < 5 || total[Opened] < steps/4 || total[TooOld] == 0 || total[Replayed] == 0 || total[NoKey] == 0 || total[Forged] == 0 {
			t.Errorf("seed %d: %d updates, results %v", seed, up, total)
		}
	}
}

func (d *direction) send(t *testing.T, rng *rand.Rand) {
	p := sealed(t, d.from, rng.IntN(20), 0)
	if rng.IntN(8) == 0 {
		return // lost
	}
	d.network = append(d.network, flight{p, d.from.send.phase, d.from.send.counter - 1})
	if len(d.network) > 1500 {
		d.network = slices.Delete(d.network, 0, 100)
	}
}

// deliver opens one packet of the network, mostly one of the newest. One in eight stays and comes again.
func (d *direction) deliver(t *testing.T, seed uint64, rng *rand.Rand) {
	n := len(d.network)
	if n == 0 {
		return
	}
	i := n - 1 - min(rng.IntN(10), n-1)
	if rng.IntN(10) == 0 {
		i = rng.IntN(n)
	}
	f := d.network[i]
	if rng.IntN(8) > 0 {
		d.network = slices.Delete(d.network, i, i+1)
	}
	want, possible := d.predict(f)
	if rng.IntN(10) == 0 {
		f.packet = slices.Clone(f.packet)
		f.packet[rng.IntN(4)] ^= 0x80 // neither nonce nor phase
		if want == Opened {
			want = Forged
		}
	}
	got := open(d.to, f.packet, 0)
	if got != want && (want == Opened || got == Opened || !slices.Contains(possible, got)) {
		t.Fatalf("seed %d: packet %d of phase %d at phase %d with %d: result %d, want %d", seed, f.counter, f.phase,
			d.to.recv.phase, d.highest, got, want)
	}
	d.results[got]++
	if got == Opened {
		d.opened[f.counter], d.highest = true, max(d.highest, f.counter+1)
	}
}

// predict returns the result for an unchanged packet. A packet of an older phase fails in one of the possible ways.
func (d *direction) predict(f flight) (want Result, possible []Result) {
	phase := d.to.recv.phase
	switch {
	case f.counter+WindowSize < d.highest:
		return TooOld, nil
	case d.opened[f.counter]:
		return Replayed, nil
	case f.phase == phase, f.phase == phase+1:
		return Opened, nil
	case f.phase+1 == phase && d.to.recv.before.exists():
		return Opened, nil
	default:
		return NoKey, []Result{NoKey, Forged}
	}
}
