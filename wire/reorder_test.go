//go:build !race

package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// On a path that reorders one packet of ten by 3 to 30 places, a connection must keep most of its rate, on a short path and
// on one of 100 µs. It must send few packets again, because none is lost. On the short path a window has ten packets, so a packet
// that waits for 30 places holds it up.
func TestReorderedPackets(t *testing.T) {
	const place = 1230 * time.Nanosecond // time of a full packet
	for roundTrip, keeps := range map[time.Duration]float64{8 * time.Microsecond: 0.6, 100 * time.Microsecond: 0.8} {
		for seed := range uint64(3) {
			rate := func(share float64) (float64, float64) {
				w := newWorld(t, simlink.Config{Seed: seed, Rate: 10e9, Delay: roundTrip / 2}, 2)
				a, b := w.nodes[0], w.nodes[1]
				s := w.stream(a, b, 1<<20)
				w.flow(20*time.Millisecond, s)
				w.net.SetHold(a.addr, b.addr, simlink.Hold{Share: share, Min: 3 * place, Max: 30 * place})
				w.flow(20*time.Millisecond, s)
				resent, packets := a.eng.stats.Retransmits, a.eng.stats.TxPackets
				r := w.flow(50*time.Millisecond, s)[0]
				return r, float64(a.eng.stats.Retransmits-resent) / float64(a.eng.stats.TxPackets-packets)
			}
			inOrder, _ := rate(0)
			got, resent := rate(0.1)
			t.Logf("round trip %v: %.2f of the rate in order (%.1f Gb/s), %.2f %% sent again", roundTrip, got/inOrder, inOrder/1e9, resent*100)
			if got < keeps*inOrder || resent > 0.05 {
				t.Errorf("round trip %v, seed %d: %.2f of the rate in order, %.2f %% sent again", roundTrip, seed, got/inOrder, resent*100)
			}
		}
	}
}
