package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
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

// A Probe leaves by itself. In a group of packets it can pass where a single packet of its size does not.
func TestProbesLeaveSingly(t *testing.T) {
	cfg := simlink.Config{Delay: 5 * time.Microsecond, MTU: 8972}
	for name, w := range map[string]*world{
		"plaintext": newWorld(t, cfg, 2),
		"secure":    newSecureWorld(t, cfg, Limits{}, usual, 2),
	} {
		ca, _ := w.pair(plain)
		w.run(time.Second)
		e := ca.eng
		for _, size := range []int{1400, 8972} {
			from := len(e.tx)
			ca.sendAck(0)
			ca.sendProbe(size)
			ca.sendAck(0)
			if len(e.tx) < from+3 {
				t.Fatalf("%s: %d frames wait", name, len(e.tx)-from)
			}
			for i, b := range e.tx[from:] {
				if single := b.Flags&link.Single != 0; single != (i == 1) {
					t.Errorf("%s, %d bytes: frame %d is single: %t", name, size, i, single)
				}
			}
			e.flush()
		}
	}
}
