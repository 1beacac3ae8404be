package stream

import (
	"io"
	"testing"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

// TestWriteIsBeforeRead: what a goroutine does before Write is ordered before what another does after Read of the peer.
// The race detector reports this test without the edge between them.
func TestWriteIsBeforeRead(t *testing.T) {
	eachLink(t, func(t *testing.T, a, b *dat.IA) {
		x, y := newPair(t, a, b)
		seen := 0
		go func() {
			p := make([]byte, 1)
			for {
				if _, err := io.ReadFull(y, p); err != nil {
					return
				}
				seen++
				_, _ = y.Write(p)
			}
		}()
		for i := range 20 {
			write(t, x, "x")
			_, err := io.ReadFull(x, make([]byte, 1))
			check(t, err)
			if seen != i+1 {
				t.Errorf("seen %d, want %d", seen, i+1)
			}
		}
	})
}

// TestAddresses: the addresses of both ends agree, and two streams have different ones.
func TestAddresses(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	v, w := newPair(t, a, b)
	for _, p := range [][2]*Conn{{x, y}, {v, w}} {
		if l, r := p[0].LocalAddr().String(), p[1].RemoteAddr().String(); l != r {
			t.Errorf("the client is %s, and %s for the server", l, r)
		}
		if l, r := p[0].RemoteAddr().String(), p[1].LocalAddr().String(); l != r {
			t.Errorf("the server is %s, and %s for the client", r, l)
		}
	}
	if x.LocalAddr().String() == v.LocalAddr().String() {
		t.Errorf("two streams are %v", x.LocalAddr())
	}
}
