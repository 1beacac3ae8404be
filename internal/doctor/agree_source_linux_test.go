package doctor_test

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

var (
	otherA = netip.MustParseAddr("10.79.0.1")
	otherB = netip.MustParseAddr("10.79.0.2")
)

// Doctor asks from the address that the adapter sends from, through the interface that the adapter sends through, and
// hears what the adapter hears.
func TestVerdictsOfSourcesAreWhatHappens(t *testing.T) {
	labtest.RequireXDP(t)
	linkLocal := netip.MustParseAddr("fe80::2")
	for _, s := range []setUp{
		{name: "peer in the network of the second address", ia: "xdp:veth0", peer: otherB, change: addOther(otherA), far: onlyOther},
		{name: "the same, automatically", variant: true, ia: "auto:veth0", peer: otherB, change: addOther(otherA), far: onlyOther},
		{name: "the same, kernel UDP from the first address", ia: "udp:10.73.0.1", peer: otherB, change: addOther(otherA), far: onlyOther},
		{name: "the same, kernel UDP from the second address", variant: true, ia: "udp:10.79.0.1", peer: otherB, change: addOther(otherA), far: onlyOther},
		{name: "source of the route", ia: "xdp:veth0", change: func() error {
			return errors.Join(addOther(otherA)(), labtest.AddRoute(lab.Interface, lab.B.Addr4(), otherA))
		}, far: func() error { return errors.Join(addOther(otherB)(), refuse(lab.A.Addr4())) }},
		{name: "source of the route that the peer cannot answer", variant: true, ia: "xdp:veth0", change: func() error {
			return errors.Join(addOther(otherA)(), labtest.AddRoute(lab.Interface, lab.B.Addr4(), otherA))
		}, far: func() error { return refuse(otherA) }},
		{name: "link-local peer", ia: "xdp:veth0", peer: linkLocal, server: "udp:fe80::2%veth0", change: addOther(netip.MustParseAddr("fe80::1")),
			far: addOther(linkLocal)},
		{name: "link-local peer, kernel UDP by another name", ia: "udp:fe80::1%other0", peer: linkLocal, server: "udp:fe80::2%veth0", change: func() error {
			return errors.Join(addOther(netip.MustParseAddr("fe80::1"))(),
				withLink(func(l netlink.Link) error { return netlink.LinkAddAltName(l, "other0") }))
		}, far: addOther(linkLocal)},
		{name: "IPv6 peer, automatically without AF_XDP", ia: "auto:tap0", peer: lab.B.Addr6(), change: func() error {
			return errors.Join(labtest.AddTap("tap0", netip.MustParsePrefix("10.77.0.1/24")), labtest.AddAddress("tap0", netip.MustParsePrefix("fd77::1/64")))
		}},
		{name: "answers through another interface, AF_XDP", ia: "xdp:veth0", second: true, far: throughSecond(lab.A.Addr4())},
		{name: "answers through another interface, kernel UDP", ia: "udp:10.73.0.1", second: true, far: throughSecond(lab.A.Addr4())},
		{name: "better route by another interface that leads there, AF_XDP", ia: "xdp:veth0", second: true, change: throughSecond(lab.B.Addr4())},
		{name: "better route by another interface that leads there, kernel UDP", variant: true, ia: "udp:10.73.0.1", second: true, change: throughSecond(lab.B.Addr4())},
		{name: "better routes by another interface, AF_XDP", variant: true, ia: "xdp:veth0", second: true, change: throughSecond(lab.B.Addr4()), far: throughSecond(lab.A.Addr4())},
		{name: "tentative address that becomes a duplicate", variant: true, ia: "udp:fd80::5", peer: lab.B.Addr6(), change: tentative("fd80::5/64")},
		{name: "tentative address", ia: "udp:fd80::7", peer: lab.B.Addr6(), change: tentative("fd80::7/64")},
		{name: "only a tentative address, AF_XDP", variant: true, ia: "xdp:veth0", peer: lab.B.Addr6(), change: onlyTentative("fd80::7/64")},
		{name: "only a tentative address that becomes a duplicate, AF_XDP", ia: "xdp:veth0", peer: lab.B.Addr6(), change: onlyTentative("fd80::5/64")},
		{name: "part of a bridge, AF_XDP", ia: "xdp:veth0", change: enslave(&netlink.Bridge{})},
		{name: "part of a bridge, kernel UDP", variant: true, ia: "udp:10.73.0.1", change: enslave(&netlink.Bridge{})},
		{name: "strict filter, AF_XDP", ia: "xdp:veth0", second: true, change: strict(lab.B.Addr4())},
		{name: "strict filter, kernel UDP", ia: "udp:10.73.0.1", second: true, change: strict(lab.B.Addr4())},
	} {
		t.Run(s.name, func(t *testing.T) {
			if s.variant && testing.Short() {
				t.Skip("make test-all runs it")
			}
			t.Parallel()
			s.compare(t)
		})
	}
}

// enslave makes the interface a part of a new one.
func enslave(master netlink.Link) func() error {
	return func() error {
		master.Attrs().Name = "master0"
		return errors.Join(netlink.LinkAdd(master), netlink.LinkSetUp(master), withLink(func(l netlink.Link) error {
			return netlink.LinkSetMaster(l, master)
		}))
	}
}

// tentative adds an address whose duplicate address detection has not ended.
func tentative(p string) func() error {
	return func() error { return labtest.AddDetected(lab.Interface, netip.MustParsePrefix(p)) }
}

// onlyTentative leaves the interface no other address.
func onlyTentative(p string) func() error {
	return func() error {
		return errors.Join(labtest.RemoveAddress(lab.Interface, netip.PrefixFrom(lab.A.Addr4(), 24)),
			labtest.RemoveAddress(lab.Interface, netip.PrefixFrom(lab.A.Addr6(), 64)), tentative(p)())
	}
}

// addOther adds an address to the interface.
func addOther(a netip.Addr) func() error {
	bits := 24
	if a.Is6() {
		bits = 64
	}
	return func() error { return labtest.AddAddress(lab.Interface, netip.PrefixFrom(a, bits)) }
}

// onlyOther gives side B an address in the second network only.
func onlyOther() error {
	return errors.Join(labtest.RemoveAddress(lab.Interface, netip.PrefixFrom(lab.B.Addr4(), 24)), addOther(otherB)())
}

// refuse makes the host send nothing to an address.
func refuse(a netip.Addr) error {
	return netlink.RouteAdd(&netlink.Route{Type: unreachable, Dst: host(a), Priority: 1})
}

// throughSecond adds a route to a host by the second pair.
func throughSecond(to netip.Addr) func() error {
	return func() error { return labtest.AddRoute(labtest.Second, to, netip.Addr{}) }
}

// strict does the same, and makes the reverse path filter strict.
func strict(to netip.Addr) func() error {
	return func() error {
		return errors.Join(throughSecond(to)(), os.WriteFile("/proc/sys/net/ipv4/conf/veth0/rp_filter", []byte("1"), 0))
	}
}

// TestAsymmetricRoutes: doctor names both ways if they differ, and what drops packets for that.
func TestAsymmetricRoutes(t *testing.T) {
	labtest.RequireXDP(t)
	for _, tt := range []struct {
		s    setUp
		want string
	}{
		{setUp{ia: "xdp:veth0", second: true, change: throughSecond(lab.B.Addr4())}, "warning: the kernel sends to 10.73.0.2 through second0, and an adapter over AF_XDP through veth0"},
		{setUp{ia: "udp:10.73.0.1", second: true, change: throughSecond(lab.B.Addr4())}, "warning: packets to 10.73.0.2 leave through second0, and its answers arrive through veth0"},
		{setUp{ia: "udp:10.73.0.1", second: true, far: throughSecond(lab.A.Addr4())}, "warning: packets to 10.73.0.2 leave through veth0, and its answers arrive through second0"},
		{setUp{ia: "xdp:veth0", second: true, far: throughSecond(lab.A.Addr4())}, "error: the answers of 10.73.0.2 arrive through second0, not through veth0"},
		{setUp{ia: "udp:10.73.0.1", second: true, change: strict(lab.B.Addr4())}, "error: rp_filter of this host drops what 10.73.0.2 sends to 10.73.0.1 through veth0"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			built, got := tt.s.build(t), ""
			for range 5 { // on a busy host the peer's kernel may not know its neighbour yet, and drops the echoes
				if got = tt.s.verdict(t, built); strings.Contains(got, tt.want) {
					return
				}
			}
			t.Errorf("got %s", got)
		})
	}
}
