package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// hoard is a siege of a shared queue: the friend has a connection that takes from it, and so have foes.
type hoard struct {
	*siege
	p      *depot
	fa, fb *Conn // the friend's
	src    memory
}

const (
	hoardReceives = 16
	hoardSize     = 10_000
)

func newHoard(t *testing.T) *hoard {
	h := &hoard{siege: newSiegeOn(t, simlink.Config{Frames: siegeFrames, Delay: time.Microsecond, Seed: 1, Rate: 1e9, QueueFrames: 1000})}
	h.p = newDepot(h.victim, hoardReceives, hoardSize)
	h.src = h.friend.memory(hoardSize)
	for i := range hoardReceives {
		h.p.add(i)
	}
	h.fa, h.fb = h.joinQueue(h.friend, h.victim, h.p, plain)
	h.run(50 * time.Millisecond)
	return h
}

// begin connects the foe and has it send the first piece of a message.
func (h *hoard) begin() *Conn {
	h.foe.down = false
	_, cv := h.joinQueue(h.foe, h.victim, h.p, plain)
	h.run(50 * time.Millisecond)
	h.foe.down = true
	h.drain()
	hd := h.header(cv, proto.Data)
	h.strike(&hd, sendChunk(0, 8, 0, 0))
	return cv
}

// from has another foe speak.
func (h *hoard) from(n *node) {
	h.foe = n
	var err error
	if h.path, err = n.link.Resolve(h.victim.addr, 0); err != nil {
		h.t.Fatal(err)
	}
}

// messages has the friend send n messages of a size, with all receives posted anew, and returns how long that took.
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

// alive has a foe's connection show that it lives, and add a byte to its message.
func (h *hoard) alive(cv *Conn) {
	hd := h.header(cv, proto.Data)
	h.strike(&hd, sendChunk(0, 1, 0, cv.recv.off))
}

// Attack 21: one peer begins a message on each of as many connections as there are receives in a shared queue, and
// finishes none. Half of the queue is all that it gets, and another peer's messages are as fast as they were.
func TestAttack21SharedQueueShare(t *testing.T) {
	h := newHoard(t)
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
	h.p.checkLine(t, append(foes, h.fb))
}

// Attack 21: peers with an address for each receive of a shared queue hold all of them, show that they live, and add a
// byte now and then. They lose their connections while an honest peer waits, whose connection stays.
func TestAttack21SharedQueueTime(t *testing.T) {
	h := newHoard(t)
	foes := map[*Conn]*node{}
	for i := range hoardReceives {
		h.from(h.addNode(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), 17473)))
		foes[h.begin()] = h.foe
		for c, n := range foes {
			h.from(n)
			h.alive(c)
		}
	}
	h.p.counts(t, 0, hoardReceives)
	for range 60 { // nobody waits: they may
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
	for range 18 {
		for c, n := range foes {
			if h.from(n); c.State() == Established {
				h.alive(c)
			}
		}
		h.run(time.Second)
	}
	limit := h.victim.host.limits.NotReady / 2
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
		t.Errorf("%d of %d receives came back within %v of %v", flushed, hoardReceives, time.Duration(h.net.Now()-start), limit)
	}
	h.until("the friend's message", time.Second, func() bool { return h.friend.request.Len() == 1 })
	if h.friend.request.Pop(&c); c.Status != StatusSuccess {
		t.Errorf("the friend's message: %+v", c)
	}
	h.victim.recv.Pop(&c)
	h.p.add(int(c.Cookie))
	h.messages(100, 64)
	h.p.checkLine(t, []*Conn{h.fb})
}

// Attack 21: connections that wait behind others of their own address are served too: many hosts may have one.
func TestAttack21SharedQueueOneAddress(t *testing.T) {
	h := newHoard(t)
	var foes []*Conn
	for range hoardReceives {
		foes = append(foes, h.begin())
	}
	limit := h.victim.host.limits.NotReady / 2
	for range int(limit/time.Second) + 2 {
		for _, c := range foes {
			if n, _ := c.Receiving(); c.State() == Established && n > 0 {
				h.alive(c)
			} else if c.State() == Established {
				hd := h.header(c, proto.Ack)
				h.strike(&hd, nil)
			}
		}
		h.run(time.Second)
	}
	flushed := 0
	for c := (Completion{}); h.victim.recv.Pop(&c); flushed++ {
		if c.Status != StatusFlushed {
			t.Errorf("%+v", c)
		}
		h.p.add(int(c.Cookie))
	}
	if flushed < hoardReceives/2 {
		t.Errorf("%d receives came back within %v, want %d", flushed, limit, hoardReceives/2)
	}
}
