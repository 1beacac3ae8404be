package dat

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// A host with several addresses answers a connection request from the address to which it was sent, whichever address the
// kernel prefers. The requester ignores packets from another address. A router advertisement can give a host an address
// that the kernel prefers.
func TestAcceptLeavesFromTheDialledAddress(t *testing.T) {
	labtest.RequireXDP(t)
	n := xdpNet{labtest.New(t, lab.Options{})}
	more := []netip.Prefix{netip.MustParsePrefix("10.73.0.99/24"), netip.MustParsePrefix("fd73::99/64")}
	ok(t, n.Do(lab.B, func() error {
		for _, p := range more {
			if err := labtest.AddAddress(lab.Interface, p); err != nil {
				return err
			}
		}
		return nil
	}))
	a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
	b.listen(testQual, 8)
	for _, b.addr = range []netip.Addr{lab.B.Addr4(), more[0].Addr(), lab.B.Addr6(), more[1].Addr()} {
		t.Run(b.addr.String(), func(t *testing.T) {
			a.t, b.t = t, t
			proves(pair(a, b, nil))
		})
	}
}
