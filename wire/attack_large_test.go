//go:build !race

package wire

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/fairqueue"
)

// Attack 21: the receives of a shared queue are large. 40 peers of two networks, or of the honest peer's network, send
// messages that fill the receives at little more than the rate that counts as progress. They hold all receives that
// their networks may hold. An honest peer must wait for about a second at most, whatever the size of the receives and
// whether it has proven itself.
func TestAttack21SharedQueueLargeReceives(t *testing.T) {
	const foes, step = 40, 10 * time.Millisecond
	for _, size := range []int{4 << 20, 40 << 20} {
		for _, tc := range []struct {
			name      string
			knownFor  time.Duration // since the friend's first message; 0: it has sent none
			neighbour bool
		}{
			{"a newcomer", 0, false}, {"a proven peer", fairqueue.ProvenTime, false}, {"a neighbour", time.Second, true},
		} {
			t.Run(fmt.Sprintf("%s, %d MiB", tc.name, size>>20), func(t *testing.T) {
				h := newHoardOf(t, netip.AddrFrom4([4]byte{10}), size, nil)
				if tc.knownFor > 0 {
					h.messages(1, 64)
					h.run(tc.knownFor)
				}
				h.victim.connect.Pop(new(Completion))
				mob := newMob(h, 0, nil)
				mob.rate = fairqueue.MinRate * 11 / 10
				for i := range foes {
					network := byte(1 + i%2)
					if tc.neighbour {
						network = 0
					}
					mob.join(netip.AddrFrom4([4]byte{10, 0, network, byte(100 + i)}))
				}
				for range 50 {
					mob.step()
					mob.run(step)
				}
				mob.check(t)
			})
		}
	}
}
