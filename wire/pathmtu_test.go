package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// mtus returns the packet sizes that the two ends of a connection use.
func mtus(a, b *Conn) [2]int { return [2]int{a.pmtu.Size, b.pmtu.Size} }

// Each end must find the largest size that passes in its direction.
func TestPathMTUIsFound(t *testing.T) {
	for _, tc := range []struct {
		name   string
		mtu    int // MTU of the links
		ab, ba int // largest packet that passes in each direction; 0: no limit
		want   [2]int
	}{
		{"ethernet", 1472, 0, 0, [2]int{1472, 1472}},
		{"jumbo", 8972, 0, 0, [2]int{8972, 8972}},
		{"jumbo, then ethernet", 8972, 1472, 0, [2]int{1472, 8972}},
		{"tunnel", 1472, 1410, 1410, [2]int{1400, 1400}},
		{"nothing usual", 1472, 1300, 0, [2]int{1200, 1472}},
		{"odd link", 5000, 0, 0, [2]int{5000, 5000}},
		{"smaller than the base", 1000, 0, 0, [2]int{1000, 1000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond, MTU: tc.mtu}, 2)
			a, b := w.nodes[0], w.nodes[1]
			for _, d := range []struct {
				from, to *node
				bytes    int
			}{{a, b, tc.ab}, {b, a, tc.ba}} {
				if d.bytes != 0 {
					w.net.SetMTU(d.from.addr, d.to.addr, d.bytes)
				}
			}
			ca, cb := w.pair(plain)
			w.run(10 * time.Second)
			if got := mtus(ca, cb); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if ca.State() != Established || cb.State() != Established {
				t.Error("the connection is over")
			}
		})
	}
}
