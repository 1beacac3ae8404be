package dat

import (
	"errors"
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

// A connection request leaves from the address that the kernel takes for the destination, whichever address of the
// interface comes first. Here the peer has a route to no other one. The first case is IPv4. The second case is IPv6, where the
// kernel lists the newest address first.
func TestConnectLeavesFromTheKernelsChoice(t *testing.T) {
	labtest.RequireXDP(t)
	prefix := netip.MustParsePrefix
	for name, tc := range map[string]struct {
		removed, added [2][]netip.Prefix // by side
		to, from       string
	}{
		"IPv4": {
			removed: [2][]netip.Prefix{lab.B: {prefix("10.73.0.2/24")}},
			added:   [2][]netip.Prefix{{prefix("10.88.0.1/24")}, {prefix("10.88.0.2/24")}},
			to:      "10.88.0.2", from: "10.88.0.1",
		},
		"IPv6": {
			removed: [2][]netip.Prefix{{prefix("10.73.0.1/24")}, {prefix("10.73.0.2/24")}},
			added:   [2][]netip.Prefix{{prefix("fd88::1/64")}},
			to:      "fd73::2", from: "fd73::1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := xdpNet{labtest.New(t, lab.Options{})}
			for _, side := range []lab.Side{lab.A, lab.B} {
				ok(t, n.Do(side, func() (err error) {
					for _, p := range tc.added[side] {
						err = errors.Join(err, labtest.AddAddress(lab.Interface, p))
					}
					for _, p := range tc.removed[side] {
						err = errors.Join(err, labtest.RemoveAddress(lab.Interface, p))
					}
					return err
				}))
			}
			a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
			b.listen(testQual, 8)
			b.addr = netip.MustParseAddr(tc.to)
			x, y := a.point(nil), b.point(nil)
			x.dial(b, nil)
			cr := b.request(t)
			if q, err := cr.Query(); err != nil || q.RemoteAddress != netip.MustParseAddr(tc.from) {
				t.Errorf("the request is from %v, %v, want %s", q.RemoteAddress, err, tc.from)
			}
			ok(t, cr.Accept(y.EP, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
			for p, want := range map[*point]string{x: tc.from, y: tc.to} {
				if q := must(p.Query())(t); q.LocalAddress.String() != want {
					t.Errorf("LocalAddress is %v, want %s", q.LocalAddress, want)
				}
			}
		})
	}
}
