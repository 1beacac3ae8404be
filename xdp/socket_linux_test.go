package xdp

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

func TestPacket(t *testing.T) {
	for _, tc := range []struct {
		mtu     int
		v6      bool
		generic bool
		sizes   []int
	}{
		{mtu: 1500, sizes: []int{0, 1, 17, 18, 64, 1472}},
		{mtu: 1500, v6: true, sizes: []int{0, 1, 64, 1452}},
		{mtu: 1500, generic: true, sizes: []int{0, 64, 1472}},
		{mtu: 9000, sizes: []int{1, 1472, 3798, 3799, 4032, 4033, 8972}},
		{mtu: 9000, v6: true, sizes: []int{1, 4033, 8952}},
		{mtu: 65000, sizes: []int{64, 9000, 64972}},
		{mtu: 65535, sizes: []int{65507}},
	} {
		t.Run(fmt.Sprintf("mtu=%d,v6=%v,generic=%v", tc.mtu, tc.v6, tc.generic), func(t *testing.T) {
			p := newPair(t, pairOptions{mtu: tc.mtu, v6: tc.v6, generic: tc.generic})
			a, b := p.ends[lab.A], p.ends[lab.B]
			to := p.path(t, lab.A)
			for i, size := range tc.sizes {
				m := message(t, a, to, size, uint32(i))
				var want []byte
				for j := range m {
					want = append(want, m[j].Data...)
				}
				a.Send(m)
				if got := collect(t, b, 1); !bytes.Equal(got[0], want) {
					t.Fatalf("size %d: %d bytes arrived and differ", size, len(got[0]))
				}
			}
			if got, want := a.PathMTU(to), tc.sizes[len(tc.sizes)-1]; got != want {
				t.Errorf("path MTU %d, want %d", got, want)
			}
			settled(t, a)
			settled(t, b)
		})
	}
}
