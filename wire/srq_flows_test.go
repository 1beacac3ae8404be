package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// checkFlows compares the counts of the queue with its connections.
func (p *depot) checkFlows(t *testing.T, conns []*Conn) {
	t.Helper()
	held, waiting := 0, 0
	for _, c := range conns {
		if c.srq.flow.Holds() || c.srq.flow.Given() {
			held++
		}
		if c.srq.flow.Waits() {
			waiting++
		}
	}
	if p.fair.Held() != held || p.fair.Waiting() != waiting {
		t.Fatalf("%d held and %d waiting, want %d and %d", p.fair.Held(), p.fair.Waiting(), held, waiting)
	}
}

// sharingFrom connects n connections from each peer to node 0, where they share a queue.
func (w *world) sharingFrom(peers []*node, cfg ConnConfig, n, receives, size int) (p *depot, from, to []*Conn) {
	w.t.Helper()
	b := w.nodes[0]
	p = newDepot(b, receives, size)
	if err := b.host.Listen(service, b); err != nil {
		w.t.Fatal(err)
	}
	for range n {
		for _, a := range peers {
			ca, cb := w.joinQueue(a, b, p, cfg)
			from, to = append(from, ca), append(to, cb)
		}
	}
	return p, from, to
}

// joinQueue connects a to b. At b the connection takes its receives from a shared queue.
func (w *world) joinQueue(a, b *node, p *depot, cfg ConnConfig) (ca, cb *Conn) {
	w.t.Helper()
	ca = a.host.NewConn(cfg)
	cfg.SRQ, cfg.Notice = p.SharedQueue, func(Notice) {}
	cb = b.host.NewConn(cfg)
	w.dial(a, b, ca, nil)
	w.until("connection request", 10*time.Second, func() bool { return len(b.arrived) > 0 })
	w.accept(b, cb, nil)
	w.until("establishment", 10*time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
	w.want(a.connect, KindEstablished)
	w.want(b.connect, KindEstablished)
	return ca, cb
}

// Each address must be one peer, in whichever form it is written.
func TestSharedQueueTellsPeersApart(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"10.0.0.1", "10.0.0.1", true}, {"10.0.0.1", "10.0.0.2", false}, {"10.0.0.1", "::ffff:10.0.0.1", true},
		{"2001:db8::1", "2001:db8::1", true}, {"2001:db8::1", "2001:db8::ffff:1", false}, {"fe80::1%a", "fe80::1%b", true},
	} {
		w := newWorld(t, simlink.Config{}, 1)
		cfg, p := plain, newDepot(w.nodes[0], 4, 64)
		cfg.SRQ, cfg.Notice = p.SharedQueue, func(Notice) {}
		for _, from := range []string{tc.a, tc.b} {
			c := w.nodes[0].host.NewConn(cfg)
			c.eng, c.peerAddr = w.nodes[0].eng, addressOf(netip.MustParseAddr(from))
			p.addFlow(c)
		}
		if got := p.fair.Peers() == 1; got != tc.same {
			t.Errorf("%s and %s: one peer is %v, want %v", tc.a, tc.b, got, tc.same)
		}
	}
}
