package udplink

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// linkLocal returns the link-local address of the interface of one end of a lab.
func linkLocal(t *testing.T, l *lab.Lab, s lab.Side) (addr netip.Addr) {
	t.Helper()
	addr = netip.MustParseAddr([]string{"fe80::a", "fe80::b"}[s])
	if err := l.Do(s, func() error { return labtest.AddAddress(lab.Interface, netip.PrefixFrom(addr, 64)) }); err != nil {
		t.Fatal(err)
	}
	return addr.WithZone(lab.Interface)
}

// While another user holds the kernel's lock of network settings (RTNL), a path is resolved at once: to a link-local
// address, and to an address for which a forged ICMP message lowered the kernel's path MTU.
func TestResolveWhileRTNLIsHeld(t *testing.T) {
	world := labtest.New(t, lab.Options{MTU: 9000})
	to4 := netip.AddrPortFrom(lab.B.Addr4(), DefaultPort)
	to6 := netip.AddrPortFrom(linkLocal(t, world, lab.B), DefaultPort)
	a4 := open(t, world, lab.A, lab.A.Addr4(), Options{})
	a6 := open(t, world, lab.A, linkLocal(t, world, lab.A), Options{})
	forgeTooBig(t, world, a4, to4, 1280)
	hanging := time.AfterFunc(10*time.Second, labtest.HoldRTNL(t))
	for _, tc := range []struct {
		l  *Link
		to netip.AddrPort
	}{{a4, to4}, {a6, to6}, {a6, netip.AddrPortFrom(to6.Addr().WithZone(""), DefaultPort)}} {
		p, err := tc.l.ResolveFrom(tc.l.Local().Addr(), tc.to, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tc.l.PathMTU(p), tc.l.Caps().MaxPayload; got != want {
			t.Errorf("%v: path MTU of %d bytes of payload, want %d", tc.to, got, want)
		}
	}
	if !hanging.Stop() {
		t.Error("the calls waited for the lock")
	}
}
