package doctor

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/ianame"
)

// untilAsked returns a peer that never answers, and a context that ends when a packet is sent to it.
func untilAsked(t *testing.T) (context.Context, netip.AddrPort) {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.9:0")))
	if err != nil {
		t.Skipf("no UDP on loopback: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		_, _, _ = c.ReadFromUDPAddrPort(make([]byte, 1)) // or the test has ended
	}()
	return ctx, c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// asking returns an exam that has found a route to a peer through the interface out.
func asking(at netip.AddrPort, out netlink.Link) *exam {
	from := netip.MustParseAddr("127.0.0.1")
	return &exam{Target: Target{kind: ianame.UDP, addr: from, Peer: at.Addr(), Port: at.Port()},
		facts: facts{address: from, way: way{from: from, out: out, nextHop: at.Addr(), routed: true, linked: true}}}
}

// TestPeerNoTime: there is no finding about a peer that had no time to answer.
func TestPeerNoTime(t *testing.T) {
	for name, run := range map[string]func(context.Context, *exam) []Finding{"neighbour": checkNeighbour, "reach": checkReach} {
		t.Run(name, func(t *testing.T) {
			ctx, at := untilAsked(t)
			nowhere := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "nowhere0", Index: 1 << 30, MTU: 1500}}
			if got := run(ctx, asking(at, nowhere)); len(got) > 0 {
				t.Errorf("got %+v, want nothing", got)
			}
			if ctx.Err() == nil {
				t.Error("the peer was not asked")
			}
		})
	}
}

// TestExamineNoTime: an examination that ends early has an error that names the check.
func TestExamineNoTime(t *testing.T) {
	ctx, at := untilAsked(t)
	target := Target{IA: "udp:127.0.0.1", Peer: at.Addr(), Port: at.Port()}
	r, err := Examine(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	last := r.Findings[len(r.Findings)-1]
	if want := "the examination was interrupted: from reach on, nothing was looked at"; last.Found != want || last.Check != "reach" ||
		last.Severity != Error || last.Fix == "" || r.Severity != Error {
		t.Errorf("got %+v, the report is %v, want an error: %s", last, r.Severity, want)
	}
	if want := "It is not known whether it will work on 127.0.0.1: the examination was interrupted."; r.Verdict != want {
		t.Errorf("verdict %q, want %q", r.Verdict, want)
	}
	ctx, at = untilAsked(t)
	target.Peer, target.Port = at.Addr(), at.Port()
	if got := Explain(ctx, target); len(got) > 0 {
		t.Errorf("explained by %+v, want nothing", got)
	}
}

// TestExamineTooLong: if the time is up, every interface that was not examined has an error.
func TestExamineTooLong(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, ia := range []string{"", "xdp:nope0", "auto:nope0"} {
		r, err := Examine(over, Target{IA: ia})
		if err != nil {
			t.Fatal(err)
		}
		f := r.Findings[0]
		if want := "the examination took too long: from kernel on, nothing was looked at"; f.Found != want || f.Severity != Error || f.Group != "host" {
			t.Errorf("%q: got %+v, want an error: %s", ia, f, want)
		}
		if r.Severity != Error || strings.Contains(r.Verdict, "will run") {
			t.Errorf("%q: %v, verdict %q", ia, r.Severity, r.Verdict)
		}
	}
}

// TestBoundNoTime: there is no finding about queues that were not tried.
func TestBoundNoTime(t *testing.T) {
	x := &exam{facts: facts{link: &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "nowhere0", Index: 1 << 30}}}}
	x.channels.CombinedCount = 4
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if got := x.bound(over); len(got) > 0 {
		t.Errorf("got %+v, want nothing", got)
	}
}
