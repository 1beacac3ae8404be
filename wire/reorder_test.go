//go:build !race

package wire

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
)

// overtaking is a link that holds back a share of its packets until 3 to 30 later ones have left, or until longest has
// passed.
type overtaking struct {
	link.Link
	now     func() Time
	r       *rand.Rand
	share   float64
	longest time.Duration
	held    []heldPacket
	total   int
}

type heldPacket struct {
	bufs  []link.Buf
	left  int // packets that still have to leave
	until Time
}

func (o *overtaking) Send(bufs []link.Buf) {
	for i := range bufs {
		if o.r.Float64() < o.share {
			o.held = append(o.held, heldPacket{slices.Clone(bufs[i : i+1]), 3 + o.r.IntN(28), o.now().Add(o.longest)})
			o.total++
			continue
		}
		o.Link.Send(bufs[i : i+1])
		o.release(1)
	}
}

// release notes that n packets have left, and sends the held packets that have waited long enough.
func (o *overtaking) release(n int) {
	now := o.now()
	keep := o.held[:0]
	for _, h := range o.held {
		if h.left -= n; h.left <= 0 || h.until <= now {
			o.Link.Send(h.bufs)
		} else {
			keep = append(keep, h)
		}
	}
	o.held = keep
}

// On a path that reorders one packet of ten by 3 to 30 places, a connection must keep most of its rate, on a short path and
// on one of 100 µs. It must send few packets again, because none is lost.
func TestReorderedPackets(t *testing.T) {
	for _, roundTrip := range []time.Duration{8 * time.Microsecond, 100 * time.Microsecond} {
		for seed := range uint64(3) {
			rate := func(share float64) (float64, float64) {
				w := newWorld(t, simlink.Config{Seed: seed, Rate: 10e9, Delay: roundTrip / 2}, 2)
				a, b := w.nodes[0], w.nodes[1]
				o := &overtaking{Link: a.link, now: func() Time { return Time(w.net.Now()) }, r: randSource(seed), longest: 50 * time.Microsecond}
				w.tap(a, &tap{Link: o})
				s := w.stream(a, b, 1<<20)
				w.flow(20*time.Millisecond, s)
				o.share = share
				w.flow(20*time.Millisecond, s)
				resent, packets := a.eng.stats.Retransmits, a.eng.stats.TxPackets
				r := w.flow(50*time.Millisecond, s)[0]
				return r, float64(a.eng.stats.Retransmits-resent) / float64(a.eng.stats.TxPackets-packets)
			}
			inOrder, _ := rate(0)
			got, resent := rate(0.1)
			t.Logf("round trip %v: %.2f of the rate in order (%.1f Gb/s), %.2f %% sent again", roundTrip, got/inOrder, inOrder/1e9, resent*100)
			if got < 0.8*inOrder || resent > 0.02 {
				t.Errorf("round trip %v, seed %d: %.2f of the rate in order, %.2f %% sent again", roundTrip, seed, got/inOrder, resent*100)
			}
		}
	}
}
