package doctor_test

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/doctor"
	"github.com/datxdp/datxdp/internal/identity"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// setUp is a host with a peer, as users have them.
type setUp struct {
	name   string
	ia     string       // of the adapter on side A
	peer   netip.Addr   // to which it connects; by default that of side B
	server string       // of the peer's adapter; by default kernel UDP at its address; "-" for none
	here   bool         // the peer's adapter is on side A
	change func() error // what differs on side A
	far    func() error // what differs on side B
	second bool         // the sides are joined by a second pair: labtest.AddSecond
	// variant means that another set-up is like this one.
	variant bool
}

// Doctor's verdict is what happens: it has no error if the adapter opens and the peer answers, and only then.
func TestVerdictsAreWhatHappens(t *testing.T) {
	labtest.RequireXDP(t)
	sealed := secureName(t)
	other, far := netip.MustParseAddr("10.73.0.50"), netip.MustParseAddr("10.99.0.2")
	for _, s := range []setUp{
		{name: "AF_XDP", ia: "xdp:veth0"},
		{name: "generic mode", ia: "xdp:veth0,generic"},
		{name: "kernel UDP", ia: "udp:10.73.0.1"},
		{name: "route by source, AF_XDP", ia: "xdp:veth0", change: routeBySource},
		{name: "route by source, kernel UDP", ia: "udp:10.73.0.1", change: routeBySource},
		{name: "route by destination port, AF_XDP", ia: "xdp:veth0", change: routeByPort(0, dat.DefaultPort)},
		{name: "route by destination port, kernel UDP", ia: "udp:10.73.0.1", change: routeByPort(0, dat.DefaultPort)},
		{name: "route by source port, AF_XDP", ia: "xdp:veth0", change: routeByPort(dat.DefaultPort, 0)},
		{name: "route by source port, kernel UDP", ia: "udp:10.73.0.1", change: routeByPort(dat.DefaultPort, 0)},
		{name: "route by another port, AF_XDP", ia: "xdp:veth0", change: routeByPort(0, 80)},
		{name: "route by another port, kernel UDP", ia: "udp:10.73.0.1", change: routeByPort(0, 80)},
		{name: "IPv4 by an IPv6 next hop, AF_XDP", ia: "xdp:veth0", peer: far, change: routeBySixth},
		{name: "IPv4 by an IPv6 next hop, kernel UDP", ia: "udp:10.73.0.1", peer: far, change: routeBySixth},
		{name: "alternative name", ia: "xdp:other0", change: func() error {
			return withLink(func(l netlink.Link) error { return netlink.LinkAddAltName(l, "other0") })
		}},
		{name: "other port of the peer", ia: "udp:10.73.0.1 port=4000 peerport=17473"},
		{name: "other version of IP", ia: "udp:10.73.0.1", peer: lab.B.Addr6()},
		{name: "better route by another interface, AF_XDP", ia: "xdp:veth0", change: betterRoute},
		{name: "better route by another interface, kernel UDP", ia: "udp:10.73.0.1", change: betterRoute},
		{name: "blackhole route", ia: "udp:10.73.0.1", change: func() error {
			return netlink.RouteAdd(&netlink.Route{Type: syscall.RTN_BLACKHOLE, Dst: host(lab.B.Addr4()), Priority: 1})
		}},
		{name: "broadcast address", ia: "xdp:veth0", peer: netip.MustParseAddr("10.73.0.255"), change: func() error {
			return labtest.AddAddress(lab.Interface, netip.MustParsePrefix("10.73.0.9/24"))
		}},
		{name: "MTU below that of IPv6", ia: "xdp:veth0", change: func() error {
			return withLink(func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1000) })
		}},
		{name: "own host, no program", ia: "xdp:veth0", peer: other, server: "-", change: func() error {
			return labtest.AddTap("tap0", netip.PrefixFrom(other, 32))
		}},
		{name: "secure mode at the peer alone", ia: "xdp:veth0", server: "udp:10.73.0.2" + sealed},
		{name: "secure mode at this end alone", ia: "xdp:veth0" + sealed},
		{name: "fewer queues than asked for", ia: "xdp:veth0 queues=7"},
		{name: "tap without a program", ia: "auto:tap0", change: func() error {
			return labtest.AddTap("tap0", netip.MustParsePrefix("10.77.0.1/24"))
		}},
		{name: "no interface", ia: "xdp:none0"},
		{name: "no address", ia: "udp:10.73.0.9"},
		{name: "no route", ia: "xdp:veth0", peer: netip.MustParseAddr("192.0.2.1")},
		{name: "no host", ia: "xdp:veth0", peer: netip.MustParseAddr("10.73.0.77")},
		{name: "no program", ia: "udp:10.73.0.1", server: "-"},
		{name: "refusing route", ia: "xdp:veth0", change: func() error {
			return netlink.RouteAdd(&netlink.Route{Type: unreachable, Dst: host(lab.B.Addr4()), Priority: 1})
		}},
		{name: "own host, another address", ia: "xdp:veth0", peer: other, server: "udp:10.73.0.50", here: true, change: func() error {
			return labtest.AddAddress(lab.Interface, netip.PrefixFrom(other, 24))
		}},
		{name: "duplicate address", ia: "udp:fd80::5", peer: lab.B.Addr6(), change: func() error {
			err := labtest.AddDetected(lab.Interface, netip.MustParsePrefix("fd80::5/64"))
			time.Sleep(2500 * time.Millisecond) // the end of the detection
			return err
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.compare(t)
		})
	}
}

// secureName returns the options of an adapter in secure mode, whose file of peers has the peers of the lab with its own
// key.
func secureName(t *testing.T) string {
	t.Helper()
	key, peers := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "peers")
	public, err := identity.CreateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("%s from=%v,%v\n", identity.Text(public), lab.A.Addr4(), lab.B.Addr4())
	if err := os.WriteFile(peers, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return " key=" + key + " peers=" + peers
}

// betterRoute adds a more specific route to the peer, by an interface that does not lead there.
func betterRoute() error {
	if err := labtest.AddTap("tap0", netip.MustParsePrefix("10.77.0.1/24")); err != nil {
		return err
	}
	l, err := netlink.LinkByName("tap0")
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: host(lab.B.Addr4())})
}

// unreachable is the type of a route that refuses packets with an error.
const unreachable = syscall.RTN_UNREACHABLE

func withLink(f func(netlink.Link) error) error {
	l, err := netlink.LinkByName(lab.Interface)
	if err != nil {
		return err
	}
	return f(l)
}

func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

func routeBySource() error { return labtest.RouteBySource(lab.Interface, lab.A.Addr4()) }

// routeByPort makes packets find the peer only by a rule for UDP ports.
func routeByPort(from, to uint16) func() error {
	return func() error { return labtest.RouteByPort(lab.Interface, false, from, to) }
}

// routeBySixth adds a route to an IPv4 address by way of the peer's IPv6 address (RFC 5549).
func routeBySixth() error {
	return withLink(func(l netlink.Link) error {
		return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: host(netip.MustParseAddr("10.99.0.2")),
			Via: &netlink.Via{AddrFamily: netlink.FAMILY_V6, Addr: lab.B.Addr6().AsSlice()}})
	})
}

// compare compares doctor's verdict with what an open and a connection do.
func (s *setUp) compare(t *testing.T) {
	l := s.build(t)
	verdict := s.verdict(t, l)
	if says, happens := strings.HasPrefix(verdict, "works"), s.works(t, l); says != happens {
		t.Errorf("works: %t, but doctor says: %s", happens, verdict)
	}
}

// build makes the lab, with the peer's adapter.
func (s *setUp) build(t *testing.T) *lab.Lab {
	l := labtest.New(t, lab.Options{})
	on := func(side lab.Side, f func() error) {
		t.Helper()
		if f == nil {
			return
		}
		if err := l.Do(side, f); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"10.99.0.2/32", "fd80::5/64"} {
		on(lab.B, func() error { return labtest.AddAddress(lab.Interface, netip.MustParsePrefix(p)) })
	}
	if !s.peer.IsValid() {
		s.peer = lab.B.Addr4()
	}
	if s.second {
		must(t, labtest.AddSecond(l))
	}
	on(lab.A, s.change)
	on(lab.B, s.far)
	side, server := lab.B, s.server
	if server == "" {
		server = "udp:" + s.peer.String()
	}
	if s.here {
		side = lab.A
	}
	_ = l.Do(side, func() error { // fails if the peer is no address of the side
		if ia, err := dat.Open(server, dat.DefaultOptions()); err == nil {
			t.Cleanup(func() { _ = ia.Close() })
		}
		return nil
	})
	return l
}

// verdict returns what doctor says, in a process of side A: doctor uses several threads.
func (s *setUp) verdict(t *testing.T, l *lab.Lab) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVerdictOfProcess$")
	cmd.Env = append(os.Environ(), "DOCTOR_IA="+s.ia, "DOCTOR_PEER="+s.peer.String())
	var out bytes.Buffer
	cmd.Stdout = &out
	child, err := l.Start(lab.A, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

// TestVerdictOfProcess is the process of verdict.
func TestVerdictOfProcess(t *testing.T) {
	ia := os.Getenv("DOCTOR_IA")
	if ia == "" {
		t.Skip("it is a process of TestVerdictsAreWhatHappens")
	}
	r, err := doctor.Examine(t.Context(), doctor.Target{IA: ia, Peer: netip.MustParseAddr(os.Getenv("DOCTOR_PEER"))})
	if err != nil {
		t.Fatal(err)
	}
	says := "works"
	for _, f := range r.Findings {
		if f.Severity == doctor.Error {
			says = "does not work"
		}
	}
	fmt.Println(says+":", r.Verdict)
	for _, f := range r.Findings {
		if f.Severity >= doctor.Warning {
			fmt.Printf("%v: %s\n", f.Severity, f.Found)
		}
	}
}

// works reports whether the adapter opens and the peer answers.
func (s *setUp) works(t *testing.T, l *lab.Lab) (answered bool) {
	_ = l.Do(lab.A, func() error {
		ia, err := dat.Open(s.ia, dat.DefaultOptions())
		if err != nil {
			return err
		}
		defer ia.Close()
		pz, err := ia.CreatePZ()
		if err != nil {
			return err
		}
		evd, err := ia.CreateEVD(16, nil, dat.EVDDTO|dat.EVDConnection)
		if err != nil {
			return err
		}
		ep, err := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
		if err != nil {
			return err
		}
		if err := ep.Connect(s.peer, 0x77, 4*time.Second, nil); err != nil {
			return err
		}
		var ev dat.Event
		_, err = evd.Wait(6*time.Second, 1, &ev)
		answered = err == nil && ev.Number == dat.EventNonPeerRejected && ev.BreakReason == dat.BreakNoListener
		return err
	})
	return answered
}
