//go:build !race

package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/fairqueue"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// hoard is a siege of a shared queue. The friend and the foes have connections that take receives from it.
type hoard struct {
	*siege
	p      *depot
	fa, fb *Conn // the friend's connection
	src    memory
}

const (
	hoardReceives = 16
	hoardSize     = 10_000
)

func newHoard(t *testing.T) *hoard { return newHoardIn(t, netip.AddrFrom4([4]byte{10})) }

// newHoardIn makes a hoard whose hosts have addresses of the given network.
func newHoardIn(t *testing.T, network netip.Addr) *hoard {
	return newHoardOf(t, network, hoardSize, nil)
}

// newHoardOf makes a hoard with receives of the given size, in the mode of keys. They all have the same memory.
func newHoardOf(t *testing.T, network netip.Addr, size int, keys *seal.Limits) *hoard {
	cfg := simlink.Config{Frames: siegeFrames, Delay: time.Microsecond, Seed: 1, Rate: 1e9, QueueFrames: 1000}
	h := &hoard{siege: newSiegeOf(t, cfg, network, keys)}
	h.p = newDepotAt(h.victim, hoardReceives, size, 0)
	h.src = h.friend.memory(hoardSize)
	for i := range hoardReceives {
		h.p.add(i)
	}
	h.fa, h.fb = h.joinQueue(h.friend, h.victim, h.p, plain)
	h.run(50 * time.Millisecond)
	return h
}

// begin connects the foe and makes it send the first piece of a message.
func (h *hoard) begin() *Conn {
	h.foe.down = false
	_, cv := h.joinQueue(h.foe, h.victim, h.p, plain)
	h.run(5 * time.Millisecond)
	h.foe.down = true
	h.drain()
	hd := h.header(cv, proto.Data)
	h.strike(&hd, sendChunk(0, 8, 0, 0))
	return cv
}

// from selects the foe whose packets the test builds next.
func (h *hoard) from(n *node) {
	h.foe = n
	var err error
	if h.path, err = n.link.Resolve(h.victim.addr, 0); err != nil {
		h.t.Fatal(err)
	}
}

// messages makes the friend send n messages, each into a newly posted receive. It returns the time that they took.
func (h *hoard) messages(n, size int) time.Duration {
	h.t.Helper()
	start, sent, got := h.net.Now(), 0, 0
	for got < n {
		for sent < n && h.friend.post(h.fa, h.fa.PostSend(h.src.seg(0, size), 0, Suppress)) {
			sent++
		}
		if h.net.Now()-start > int64(20*time.Second) || !h.step() {
			h.t.Fatalf("%d of %d messages of %d bytes have arrived", got, n, size)
		}
		var c Completion
		for h.victim.recv.Pop(&c) {
			if c.Conn != h.fb || c.Status != StatusSuccess || int(c.Length) != size {
				h.t.Fatalf("%+v", c)
			}
			h.p.add(int(c.Cookie))
			got++
		}
	}
	return time.Duration(h.net.Now() - start)
}

// alive makes a foe add a byte to its message, which also keeps its connection alive.
func (h *hoard) alive(cv *Conn) {
	hd := h.header(cv, proto.Data)
	h.strike(&hd, sendChunk(0, 1, 0, cv.recv.off))
}

// Attack 21: one peer has as many connections as a shared queue has receives. On each connection, the peer begins a
// message and never finishes it. The peer must get only half of the receives, and the messages of another peer must not
// become slower.
func TestAttack21SharedQueueShare(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		h := newHoardOf(t, netip.AddrFrom4([4]byte{10}), hoardSize, keys)
		small, large := h.messages(500, 64), h.messages(100, hoardSize)
		var foes []*Conn
		for range hoardReceives {
			foes = append(foes, h.begin())
		}
		held := 0
		for _, c := range foes {
			n, _ := c.Receiving()
			held += n
		}
		if held != hoardReceives/2 {
			t.Errorf("one peer holds %d receives of %d", held, hoardReceives)
		}
		if took := h.messages(500, 64); took > small*11/10 {
			t.Errorf("500 small messages took %v, %v before", took, small)
		}
		if took := h.messages(100, hoardSize); took > large*11/10 {
			t.Errorf("100 large messages took %v, %v before", took, large)
		}
		h.p.checkFlows(t, append(foes, h.fb))
	})
}

// Attack 21: hostile peers in two networks hold all receives of a shared queue, one receive each. Each hostile peer
// adds a byte to its message now and then. When an honest peer waits for a receive, the connections of the hostile
// peers must break, and the connection of the honest peer must survive.
func TestAttack21SharedQueueTime(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		h := newHoardOf(t, netip.AddrFrom4([4]byte{10}), hoardSize, keys)
		foes := map[*Conn]*node{}
		for i := range hoardReceives {
			h.from(h.addNode(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1 + byte(i%2), byte(i)}), 17473)))
			foes[h.begin()] = h.foe
			for c, n := range foes {
				h.from(n)
				h.alive(c)
			}
		}
		h.p.counts(t, 0, hoardReceives)
		for range 60 { // nobody waits, so the foes may hold the receives
			h.run(time.Second)
			for c, n := range foes {
				h.from(n)
				h.alive(c)
			}
		}
		if n := h.victim.connect.Len(); n != 0 {
			var c Completion
			h.victim.connect.Pop(&c)
			t.Fatalf("%d connections ended though nobody waited: %v, %v", n, BreakReason(c.Data), foes[c.Conn].addr)
		}
		h.friend.post(h.fa, h.fa.PostSend(h.src.seg(0, 64), 7, 0))
		start := h.net.Now()
		for range 10 {
			for c, n := range foes {
				if h.from(n); c.State() == Established {
					h.alive(c)
				}
			}
			h.run(100 * time.Millisecond)
		}
		flushed := 0
		var c Completion
		for h.victim.recv.Pop(&c) {
			if c.Status != StatusFlushed || foes[c.Conn] == nil {
				t.Errorf("%+v", c)
			}
			h.p.add(int(c.Cookie))
			flushed++
		}
		for range flushed {
			if h.victim.connect.Pop(&c); c.Kind != KindBroken || BreakReason(c.Data) != BreakUnfinished {
				t.Errorf("%+v", c)
			}
		}
		if flushed != hoardReceives {
			t.Errorf("%d of %d receives came back within %v", flushed, hoardReceives, time.Duration(h.net.Now()-start))
		}
		h.until("the friend's message", time.Second, func() bool { return h.friend.request.Len() == 1 })
		if h.friend.request.Pop(&c); c.Status != StatusSuccess {
			t.Errorf("the friend's message: %+v", c)
		}
		h.victim.recv.Pop(&c)
		h.p.add(int(c.Cookie))
		h.messages(100, 64)
		h.p.checkFlows(t, []*Conn{h.fb})
	})
}

// Attack 21: many hosts may share an address. Connections that wait behind others of it must be served too.
func TestAttack21SharedQueueOneAddress(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		h := newHoardOf(t, netip.AddrFrom4([4]byte{10}), hoardSize, keys)
		var foes []*Conn
		for range hoardReceives {
			foes = append(foes, h.begin())
		}
		for range 10 {
			for _, c := range foes {
				if n, _ := c.Receiving(); c.State() == Established && n > 0 {
					h.alive(c)
				} else if c.State() == Established {
					hd := h.header(c, proto.Ack)
					h.strike(&hd, nil)
				}
			}
			h.run(100 * time.Millisecond)
		}
		flushed := 0
		for c := (Completion{}); h.victim.recv.Pop(&c); flushed++ {
			if c.Status != StatusFlushed {
				t.Errorf("%+v", c)
			}
			h.p.add(int(c.Cookie))
		}
		if flushed < hoardReceives/2 {
			t.Errorf("%d receives came back within %v, want %d", flushed, fairqueue.ProgressTimeout, hoardReceives/2)
		}
	})
}

// Attack 21: many peers in 16 networks begin a message on each connection and add a byte ten times a second. In one
// case, they finish each message within the progress timeout. When a connection breaks, its peer connects again. An
// honest peer must wait at most 1 s for a receive. The message of the honest peer must survive packet loss and an
// outage of 500 ms.
func TestAttack21SharedQueueCrowd(t *testing.T) {
	for _, tc := range []struct {
		name   string
		foes   int
		finish bool // finishes each message within the progress timeout
		lossy  bool
	}{
		{"16", 16, false, false}, {"64", 64, false, false}, {"16, lossy", 16, false, true}, {"64, lossy", 64, false, true},
		{"64 that finish", 64, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHoard(t)
			mob := newMob(h, tc.foes, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i % 16), byte(i / 16)}) })
			mob.finish = tc.finish
			if tc.lossy {
				h.net.SetLoss(h.friend.addr, h.victim.addr, 0.01)
				mob.outage = 5
			}
			mob.check(t)
		})
	}
}

// Attack 21: one host with 64 addresses of the honest peer's own network does the same.
func TestAttack21SharedQueueNeighbours(t *testing.T) {
	for _, tc := range []struct {
		name, network string
		foe           func(i int) netip.Addr
	}{
		{"IPv4", "10.0.0.0", func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + i)}) }},
		{"IPv6", "2001:db8::", func(i int) netip.Addr {
			return netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 8: byte(i), 15: 9})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHoardIn(t, netip.MustParseAddr(tc.network))
			h.messages(1, 64) // makes the neighbour a known peer
			newMob(h, 64, tc.foe).check(t)
		})
	}
}

// Attack 21: peers of 200 networks do the same. A friend that has sent messages for ProvenTime must wait at most 1 s.
func TestAttack21SharedQueueNetworks(t *testing.T) {
	h := newHoard(t)
	h.messages(1, 64)
	h.run(fairqueue.ProvenTime)
	h.victim.connect.Pop(new(Completion))
	newMob(h, 200, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i), 1}) }).check(t)
}

// Attack 21: a message of a hostile peer waits for a receive. The peer sends the packet again without the message, so
// that its connection waits for a receive that it does not need. To evict the held packet, it fills the frames with early
// packets of other connections. Then it ends all other messages. Its connection must break. The messages of another
// peer must not wait.
func TestAttack21SharedQueueWithoutNeed(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		for _, tc := range []struct {
			name string
			body []byte
		}{{"a write of no bytes", writeChunk(0, 0, 0, 0)}, {"no chunk", nil}} {
			t.Run(tc.name, func(t *testing.T) {
				h := newHoardOf(t, netip.AddrFrom4([4]byte{10}), hoardSize, keys)
				small := h.messages(500, 64)
				var holders []*Conn
				for range hoardReceives / 2 {
					holders = append(holders, h.begin())
				}
				room := h.victim.eng.caps.RxFrames
				idle, fillers := h.joinMore(1)[0], h.joinMore(room)
				hd := h.header(idle, proto.Data)
				h.strike(&hd, sendOnlyChunk(8))
				if !idle.srq.flow.Waits() || idle.recv.early.Packets() != 1 {
					t.Fatalf("waits %v, %d packets held", idle.srq.flow.Waits(), idle.recv.early.Packets())
				}
				for _, c := range fillers { // one packet each, so that the idle connection is the oldest of equals
					h.early(c, 1)
				}
				if idle.recv.early.Packets() != 0 {
					t.Fatal("the packet is still held")
				}
				hd.TS++
				h.strike(&hd, tc.body)
				for _, c := range holders { // from now on, the thresholds allow the peer a receive
					last := h.header(c, proto.Data)
					h.strike(&last, sendChunk(proto.Last, 0, 0, 8))
					var done Completion
					for h.victim.recv.Pop(&done) {
						h.p.add(int(done.Cookie))
					}
				}
				if took := h.messages(500, 64); took > small*11/10 {
					t.Errorf("500 small messages took %v, %v before", took, small)
				}
				h.want(h.victim.connect, KindBroken)
				h.p.counts(t, hoardReceives, hoardReceives)
			})
		}
	})
}

// joinMore connects the foe n times.
func (h *hoard) joinMore(n int) (conns []*Conn) {
	h.foe.down = false
	for range n {
		_, cv := h.joinQueue(h.foe, h.victim, h.p, plain)
		conns = append(conns, cv)
	}
	h.run(5 * time.Millisecond)
	h.foe.down = true
	h.drain()
	return conns
}

// early sends n early packets on a connection of the foe.
func (h *hoard) early(cv *Conn, n int) {
	for i := range n {
		hd := h.header(cv, proto.Data)
		hd.PSN += 2 + seq.Num(i)
		h.strike(&hd, nil)
	}
}
