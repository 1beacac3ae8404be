package route

import (
	"net"
	"net/netip"
	"os"
	"syscall"
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

// Flows are divided among the next hops of a multipath route as the kernel divides them, and pass by a next hop that does
// not answer if the kernel does so (net.ipv4.fib_multipath_use_neigh).
func TestFlowsSpreadOverNextHops(t *testing.T) {
	w := newWorld(t)
	dead := netip.MustParseAddr("10.73.0.101")
	for prefix, gateways := range map[string][2]string{
		"192.0.2.0/24":  {dead.String(), "10.73.0.102"},
		"2001:db8::/64": {"fd73::101", "fd73::102"},
	} {
		r := &netlink.Route{Dst: ipNet(netip.MustParsePrefix(prefix))}
		for _, gw := range gateways {
			r.MultiPath = append(r.MultiPath, &netlink.NexthopInfo{LinkIndex: w.table.index, Gw: netip.MustParseAddr(gw).AsSlice()})
		}
		w.must(w.nl[lab.A].RouteAdd(r))
		if used := w.gateways(netip.MustParsePrefix(prefix).Addr()); len(used) != 2 {
			t.Errorf("64 destinations of %s are reached by way of %v", prefix, used)
		}
	}
	w.on(lab.A, func() error {
		return os.WriteFile("/proc/sys/net/ipv4/fib_multipath_use_neigh", []byte("1"), 0)
	})
	w.must(w.nl[lab.A].NeighSet(&netlink.Neigh{LinkIndex: w.table.index, IP: dead.AsSlice(), State: netlink.NUD_FAILED, Family: syscall.AF_INET}))
	if used := w.gateways(netip.MustParseAddr("192.0.2.0")); len(used) != 1 || used[dead] > 0 {
		t.Errorf("%v has failed, and destinations are reached by way of %v", dead, used)
	}
}

// gateways counts the gateways to the 64 addresses after an address, and compares them with those of the kernel.
func (w *world) gateways(dst netip.Addr) map[netip.Addr]int {
	w.Helper()
	used := make(map[netip.Addr]int)
	for range 64 {
		dst = dst.Next()
		src := lab.A.Addr6()
		if dst.Is4() {
			src = lab.A.Addr4()
		}
		f := flow{anyPort(src), anyPort(dst)}
		got, err := w.table.lookup(f)
		w.must(err)
		want, err := w.table.asker.get(f, 0, 0)
		w.must(err)
		if got.via != want.viaTo(dst) {
			w.Errorf("%v: by %v, the kernel: by %v", f, got.via, want.viaTo(dst))
		}
		used[got.via]++
	}
	return used
}
