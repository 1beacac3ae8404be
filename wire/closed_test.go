package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// inBothModes runs a test in plaintext mode and in secure mode.
func inBothModes(t *testing.T, test func(t *testing.T, keys *seal.Limits)) {
	t.Run("plaintext", func(t *testing.T) { test(t, nil) })
	t.Run("secure", func(t *testing.T) { test(t, usual) })
}

// The end of a connection is no sign of an attack: it causes neither a Reset nor packets that count as those of an unknown
// connection. Either end closes, or both do, at once or after their requests, also over a network that loses, reorders and
// duplicates packets.
func TestOrderlyCloseIsNoAttack(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 15
	}
	inBothModes(t, func(t *testing.T, keys *seal.Limits) {
		for seed := range seeds {
			w := newSecureWorld(t, rough(seed, 20), Limits{}, keys, 2)
			for i := range 8 {
				w.transferAndClose(i%4 != 1, i%4 != 0, i < 4, time.Duration(uint64(i)*seed)*time.Microsecond)
			}
			for i, n := range w.nodes {
				if s := n.eng.Stats(); s.Resets != 0 || s.UnknownConnection != 0 || n.eng.Connections() != 0 {
					t.Errorf("seed %d: node %d sent %d Resets, %d packets were of unknown connections, %d connections are left", seed, i,
						s.Resets, s.UnknownConnection, n.eng.Connections())
				}
			}
		}
	})
}

// transferAndClose connects nodes 0 and 1, writes in both directions for a while, and disconnects at one end or at both.
func (w *world) transferAndClose(active, passive, gracefully bool, after time.Duration) {
	w.t.Helper()
	const size = 20_000
	ca, cb := w.pair(plain)
	a, b := w.nodes[0], w.nodes[1]
	at, to := a.memory(size), b.memory(size)
	a.post(ca, ca.PostWrite(at.seg(0, size), 1, to.at(0), 0))
	b.post(cb, cb.PostWrite(to.seg(0, size), 2, at.at(0), 0))
	w.run(after)
	if active {
		w.disconnect(a, ca, gracefully)
	}
	if passive {
		w.disconnect(b, cb, gracefully)
	}
	w.until("the end", 10*time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
	w.run(5 * time.Second)
	for _, n := range w.nodes {
		discard(n.request)
		discard(n.connect)
	}
}

func (w *world) disconnect(n *node, c *Conn, gracefully bool) {
	w.t.Helper()
	if err := n.eng.Disconnect(c, gracefully); err != nil {
		w.t.Fatal(err)
	}
}

// discard empties a queue.
func discard(q *Queue) {
	var c Completion
	for q.Pop(&c) {
	}
}

// A packet of a closed connection gets no Reset for timeWait, and then one. In plaintext mode a packet with another tag gets
// one at once.
func TestLatePacket(t *testing.T) {
	inBothModes(t, func(t *testing.T, keys *seal.Limits) {
		w := newSecureWorld(t, rough(1, 2), Limits{}, keys, 2)
		var late []byte // an acknowledgement of node 0
		w.tap(w.nodes[0], &tap{show: func(b []byte) {
			if typeOf(b) == proto.Ack {
				late = b
			}
		}})
		a, b := w.nodes[0], w.nodes[1]
		ca, cb := w.pair(plain)
		at, to := a.memory(8), b.memory(8)
		b.post(cb, cb.PostWrite(to.seg(0, 8), 1, at.at(0), 0))
		w.run(100 * time.Millisecond)
		w.disconnect(a, ca, false)
		w.until("the end", time.Second, func() bool { return cb.State() == Closed && a.eng.Connections() == 0 })
		send := func(what string, packet []byte, want uint64) {
			before := b.eng.Stats()
			w.injectRaw(a, b, packet)
			w.run(100 * time.Microsecond)
			s := b.eng.Stats()
			if resets, unknown := s.Resets-before.Resets, s.UnknownConnection-before.UnknownConnection; resets != want || unknown != want {
				t.Errorf("%s: %d Resets, %d packets of unknown connections, want %d", what, resets, unknown, want)
			}
		}
		send("at once", late, 0)
		w.run(timeWait / 2)
		send("later", late, 0)
		if keys == nil {
			send("with another tag", changed(late, 28, 1), 1)
		}
		w.run(timeWait)
		send("at last", late, 1)
	})
}

// An engine remembers a bounded number of closed connections, for a bounded time.
func TestClosedConnsAreBounded(t *testing.T) {
	var s closedConns
	peer, stranger := netip.AddrFrom4([4]byte{10, 0, 0, 1}), netip.AddrFrom4([4]byte{10, 0, 0, 2})
	const more = 100
	for i := range uint32(maxClosedConns + more) {
		s.add(newClosed(i, 0, 0, peer, nil), Time(i))
	}
	now := Time(maxClosedConns + more)
	if len(s.order) != maxClosedConns || len(s.byID) != maxClosedConns {
		t.Errorf("%d and %d are remembered", len(s.order), len(s.byID))
	}
	if s.find(more-1, peer, now) != nil || s.find(more, peer, now) == nil || s.find(more, stranger, now) != nil {
		t.Error("the oldest ones are not forgotten, or the address is not compared")
	}
	s.add(newClosed(more, 1, 0, peer, nil), now) // another connection has the ID again
	if now = now.Add(timeWait - 1); s.find(more, peer, now) == nil || len(s.order) != 1 || len(s.byID) != 1 {
		t.Errorf("%d and %d are remembered", len(s.order), len(s.byID))
	}
	if now = now.Add(1); s.find(more, peer, now) != nil || len(s.byID) != 0 {
		t.Error("a connection is remembered for too long")
	}
}
