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
		r, err := w.table.asker.get(flow{dst: anyPort(dst)}, w.table.index, 0)
		return err == nil && r.mtu == mtu
	})
}

// A forged ICMP "packet too big" message changes the MTU of no route, for a Table or for a Reach without privilege. The
// MTU of the route in the routing table is used.
func TestForgedTooBigChangesNoRoute(t *testing.T) {
	w := newWorld(t)
	var reach *Reach
	w.on(lab.A, func() (err error) {
		labtest.WithCaps(t, nil, func() { reach, err = OpenReach(netip.AddrPort{}) })
		return err
	})
	t.Cleanup(reach.Close)
	for _, tc := range []struct {
		to, via netip.Addr
		mtu     int
	}{
		{lab.B.Addr4(), netip.Addr{}, 1500},
		{lab.B.Addr6(), netip.Addr{}, 1500},
		{netip.MustParseAddr("192.0.2.1"), lab.B.Addr4(), 1400},
		{netip.MustParseAddr("2001:db8::1"), lab.B.Addr6(), 1400},
	} {
		if tc.via.IsValid() {
			dst := &net.IPNet{IP: tc.to.AsSlice(), Mask: net.CIDRMask(tc.to.BitLen(), tc.to.BitLen())}
			w.must(w.nl[lab.A].RouteAdd(&netlink.Route{LinkIndex: w.table.index, Dst: dst, Gw: tc.via.AsSlice(), MTU: tc.mtu}))
		}
		w.tooBig(tc.to, 1280)
		w.until("the MTU of the route", func() bool { return reach.MTU(anyPort(tc.to)) == tc.mtu })
		if got := w.resolve(tc.to.String()).MTU(); got != tc.mtu {
			t.Errorf("Table: MTU of the route to %v is %d, want %d", tc.to, got, tc.mtu)
		}
	}
	if got := reach.MTU(anyPort(netip.MustParseAddr("198.51.100.1"))); got != 0 {
		t.Errorf("MTU without a route is %d, want 0", got)
	}
}
