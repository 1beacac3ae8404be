package wire

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// named is a set of senders whose connections have names, which are letters.
type named struct {
	senders
	names map[*Conn]byte
}

func newNamed() *named { return &named{newScheduler().senders, map[*Conn]byte{}} }

// add makes a connection of the address for each letter of names.
func (w *named) add(addr, names string) (conns []*Conn) {
	for i := range len(names) {
		c := &Conn{}
		c.peerAddr = netip.MustParseAddr(addr)
		w.join(c)
		w.names[c] = names[i]
		conns = append(conns, c)
	}
	return conns
}

// order returns the names of the connections that get the next n turns. A connection is queued again after its turn.
func (w *named) order(q *turns, n int) string {
	var b []byte
	for range n {
		c := q.nextConn()
		b = append(b, w.names[c])
		q.pop(c)
		q.push(c)
	}
	return string(b)
}

// Turns must go to networks first, then to addresses, then to connections.
func TestTurnsGoByNetworkAndAddress(t *testing.T) {
	for _, tt := range []struct {
		name  string
		conns [][2]string // address, connections
		want  string
	}{
		{"one address", [][2]string{{"192.0.2.1", "abc"}}, "abcabcabc"},
		{"an address with many connections", [][2]string{{"192.0.2.1", "abcdef"}, {"192.0.2.2", "X"}}, "aXbXcXdXe"},
		{"two addresses of a network, and another network", [][2]string{{"192.0.2.1", "abc"}, {"192.0.2.2", "d"}, {"198.51.100.1", "X"}}, "aXdXbXdXcXdX"},
		{"many addresses of a network", [][2]string{
			{"2001:db8::1", "a"}, {"2001:db8::2", "b"}, {"2001:db8::3", "c"}, {"2001:db8:0:1::1", "X"},
		}, "aXbXcXaX"},
	} {
		w := newNamed()
		for k := range turnKinds {
			q := &turns{kind: k}
			var all []*Conn
			for _, a := range tt.conns {
				all = append(all, w.add(a[0], a[1])...)
			}
			for _, c := range all {
				q.push(c)
				q.push(c) // has no effect
			}
			if got := w.order(q, len(tt.want)); got != tt.want {
				t.Errorf("%s: the turns were %s, want %s", tt.name, got, tt.want)
			}
			for _, c := range all {
				q.remove(c)
				q.remove(c) // has no effect
				q.pop(c)    // has no effect
				w.leave(c)
				w.leave(c) // has no effect
			}
			if !q.empty() || !q.networks.Empty() || len(w.addresses)+len(w.networks) != 0 {
				t.Errorf("%s: left over: %+v, %d addresses, %d networks", tt.name, q, len(w.addresses), len(w.networks))
			}
		}
	}
}

// The queues of an engine must agree with a set of connections, whatever joins, waits and leaves.
func TestTurnsAgainstModel(t *testing.T) {
	for seed := range uint64(50) {
		r := randSource(seed)
		w := newNamed()
		queues := [turnKinds]turns{{kind: readyTurns}, {kind: partialTurns}, {kind: dueTurns}}
		var all []*Conn
		var want [turnKinds][]*Conn
		drop := func(k turnKind, c *Conn) {
			want[k] = slices.DeleteFunc(want[k], func(x *Conn) bool { return x == c })
		}
		for range 500 {
			k := turnKind(r.IntN(int(turnKinds)))
			q := &queues[k]
			switch n := len(all); {
			case n == 0 || r.IntN(8) == 0:
				addr := netip.AddrFrom4([4]byte{10, 0, byte(r.IntN(3)), byte(r.IntN(3))})
				all = append(all, w.add(addr.String(), "x")...)
			case r.IntN(8) == 0:
				i := r.IntN(n)
				for k := range turnKinds {
					queues[k].remove(all[i])
					drop(k, all[i])
				}
				w.leave(all[i])
				all = slices.Delete(all, i, i+1)
			case r.IntN(3) == 0 && !q.empty():
				c := q.nextConn()
				if !slices.Contains(want[k], c) {
					t.Fatalf("seed %d: a connection that is not queued gets a turn", seed)
				}
				q.pop(c)
				drop(k, c)
			default:
				if c := all[r.IntN(n)]; !q.isQueued(c) {
					q.push(c)
					want[k] = append(want[k], c)
				}
			}
			for k := range turnKinds {
				if queues[k].conns != len(want[k]) || queues[k].empty() != queues[k].networks.Empty() {
					t.Fatalf("seed %d: %d connections are queued, want %d", seed, queues[k].conns, len(want[k]))
				}
			}
		}
	}
}

// A turn must become shorter as more connections are ready, and a Poll must send a bounded number of packets.
func TestTurnsShrink(t *testing.T) {
	const conns, turn = 128, roundPackets / 128
	s := newSpread(t, conns)
	const size = 64 << 10
	src, dst := s.from.memory(size), s.to.memory(size)
	for _, c := range s.conns {
		s.from.post(c, c.PostWrite(src.seg(0, size), 0, dst.at(0), 0))
	}
	first := make([]int, conns)
	for i, c := range s.conns {
		first[i] = int(c.sent.Nxt)
	}
	for poll := 1; poll <= roundPackets/maxTransmit; poll++ {
		before := s.from.eng.stats.TxPackets
		s.from.eng.Poll(s.from.eng.now)
		if n := s.from.eng.stats.TxPackets - before; n > maxTransmit {
			t.Errorf("one Poll sent %d packets, want %d at most", n, maxTransmit)
		}
	}
	for i, c := range s.conns {
		if n := int(c.sent.Nxt) - first[i]; n != turn {
			t.Fatalf("connection %d sent %d packets in a round, want %d", i, n, turn)
		}
	}
	s.until("all writes", time.Second, func() bool { return s.from.request.Len() == conns })
}

// Many connections to one peer have partial packets that wait for tokens. The partial packet of a connection to another
// peer must leave with one of the next two tokens.
func TestPartialsTakeTurns(t *testing.T) {
	s := newSpread(t, 2*bucketSize)
	third := s.addNode(netip.MustParseAddrPort("10.0.0.9:17473"))
	if err := third.host.Listen(service, third); err != nil {
		t.Fatal(err)
	}
	c, peer := s.from.host.NewConn(deep), third.host.NewConn(deep)
	s.dial(s.from, third, c, nil)
	s.until("the request", time.Second, func() bool { return len(third.arrived) > 0 })
	s.accept(third, peer, nil)
	s.until("the connection", time.Second, func() bool { return c.State() == Established && peer.State() == Established })
	third.postRecv(peer, third.memory(64).seg(0, 64), 0)
	s.idle()
	s.post(len(s.conns))
	if n := s.from.eng.sched.partials.conns; n < bucketSize/2 {
		t.Fatalf("%d packets wait: the test tests nothing", n)
	}
	first := c.sent.Nxt
	s.from.post(c, c.PostSend(s.s, 0, 0))
	s.from.eng.sched.bucket = 2 * tokenTime
	if s.from.eng.Poll(s.from.eng.now); c.sent.Nxt == first {
		t.Errorf("the packet waits behind %d others", s.from.eng.sched.partials.conns)
	}
}
