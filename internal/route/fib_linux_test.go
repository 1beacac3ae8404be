package route

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// tooBig makes the kernel of A believe a forged ICMP "packet too big" message about packets to dst. The message concerns
// a socket of another program.
func (w *world) tooBig(dst netip.Addr, mtu int) {
	w.Helper()
	from := lab.A.Addr4()
	if dst.Is6() {
		from = lab.A.Addr6()
	}
	var other *net.UDPConn
	w.on(lab.A, func() (err error) {
		other, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)))
		return err
	})
	defer other.Close()
	port := other.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	w.on(lab.B, func() error {
		return labtest.ForgeTooBig(netip.AddrPortFrom(from, port), netip.AddrPortFrom(dst, 9), mtu)
	})
	w.until("the kernel believes the message", func() bool {
		r, err := routeGet(w.nl[lab.A], dst, &netlink.RouteGetOptions{OifIndex: w.table.index})
		return err == nil && r.MTU == mtu
	})
}

// A forged ICMP "packet too big" message changes the MTU of no route, for a Table or for a FIB without privilege. The
// MTU of the route in the routing table is used.
func TestForgedTooBigChangesNoRoute(t *testing.T) {
	w := newWorld(t)
	var fib *FIB
	w.on(lab.A, func() (err error) {
		labtest.WithCaps(t, nil, func() { fib, err = OpenFIB() })
		return err
	})
	t.Cleanup(fib.Close)
	for _, tc := range []struct {
		from, to, via netip.Addr
		mtu           int
	}{
		{lab.A.Addr4(), lab.B.Addr4(), netip.Addr{}, 1500},
		{lab.A.Addr6(), lab.B.Addr6(), netip.Addr{}, 1500},
		{lab.A.Addr4(), netip.MustParseAddr("192.0.2.1"), lab.B.Addr4(), 1400},
		{lab.A.Addr6(), netip.MustParseAddr("2001:db8::1"), lab.B.Addr6(), 1400},
	} {
		if tc.via.IsValid() {
			dst := &net.IPNet{IP: tc.to.AsSlice(), Mask: net.CIDRMask(tc.to.BitLen(), tc.to.BitLen())}
			w.must(w.nl[lab.A].RouteAdd(&netlink.Route{LinkIndex: w.table.index, Dst: dst, Gw: tc.via.AsSlice(), MTU: tc.mtu}))
		}
		w.tooBig(tc.to, 1280)
		if got, err := fib.MTU(tc.from, tc.to, 0); err != nil || got != tc.mtu {
			t.Errorf("FIB: MTU of the route to %v is %d, %v, want %d", tc.to, got, err, tc.mtu)
		}
		if got := w.resolve(tc.to.String()).MTU(); got != tc.mtu {
			t.Errorf("Table: MTU of the route to %v is %d, want %d", tc.to, got, tc.mtu)
		}
	}
	for _, to := range []string{lab.A.Addr4().String(), "198.51.100.1"} {
		got, err := fib.MTU(lab.A.Addr4(), netip.MustParseAddr(to), 0)
		t.Logf("%s: %d, %v", to, got, err)
		if own := to == lab.A.Addr4().String(); own != (err == nil && got > 1500) {
			t.Errorf("MTU of the route to %s is %d, %v", to, got, err)
		}
	}
}
