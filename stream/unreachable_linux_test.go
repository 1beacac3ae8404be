package stream

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestNeighbourIsSilent: a dial to an address of the link that nobody has ends when the kernel gives the neighbour up, with
// the error of kernel TCP.
func TestNeighbourIsSilent(t *testing.T) {
	labtest.RequireXDP(t)
	for _, own := range []netip.Addr{lab.A.Addr4(), lab.A.Addr6()} {
		for _, adapter := range []string{xdpAdapter, fmt.Sprintf("udp:%v", own)} {
			absent := own.Next().Next().Next()
			t.Run(fmt.Sprint(adapter, " ", absent), func(t *testing.T) {
				t.Parallel()
				n := labtest.New(t, lab.Options{})
				d := Dialer{Adapter: adapter, Timeout: 20 * time.Second}
				check(t, n.Do(lab.A, func() error {
					c, err := d.DialContext(t.Context(), "tcp", netip.AddrPortFrom(absent, 7000).String())
					if !errors.Is(err, syscall.EHOSTUNREACH) {
						t.Errorf("%v, %v, want EHOSTUNREACH", c, err)
					}
					return nil
				}))
			})
		}
	}
}
