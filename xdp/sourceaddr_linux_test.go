package xdp

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// SourceAddr returns the source of the packets that an open device sends, before the device is open and afterwards. An
// address whose port another program has is not served, and is no source.
func TestSourceAddr(t *testing.T) {
	l := newLab(t, 1500, 1)
	second, taken := netip.MustParseAddr("10.79.0.1"), netip.MustParseAddr("10.80.0.1")
	onSide(t, l, lab.A, func() error {
		for _, a := range []netip.Addr{second, taken} {
			if err := labtest.AddAddress(lab.Interface, netip.PrefixFrom(a, 24)); err != nil {
				return err
			}
		}
		return labtest.AddRoute(lab.Interface, netip.MustParseAddr("10.73.0.9"), second)
	})
	program(t, l, netip.AddrPortFrom(taken, DefaultPort))
	want := map[string]netip.Addr{"10.73.0.2": lab.A.Addr4(), "10.79.0.2": second, "10.80.0.2": lab.A.Addr4(), "10.73.0.9": second,
		lab.B.Addr6().String(): lab.A.Addr6()}
	compare := func() {
		for to, from := range want {
			onSide(t, l, lab.A, func() error {
				got, err := SourceAddr(lab.Interface, small(), netip.AddrPortFrom(netip.MustParseAddr(to), DefaultPort))
				if got != from {
					t.Errorf("to %s: %v, want %v", to, got, from)
				}
				return err
			})
		}
	}
	compare()
	s := openDevice(t, l, lab.A, small()).sockets[0]
	for to, from := range want {
		path, err := s.Resolve(netip.AddrPortFrom(netip.MustParseAddr(to), DefaultPort), 1)
		if err != nil || s.Origin(path) != from {
			t.Errorf("the device sends to %s from %v, %v; want %v", to, s.Origin(path), err, from)
		}
		s.Release(path)
	}
	delete(want, "10.80.0.2") // all addresses count as served now
	compare()
}
