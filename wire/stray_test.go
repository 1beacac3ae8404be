package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// crosswise is a link whose packets arrive on another link, as if RSS had chosen another queue than we did.
type crosswise struct {
	link.Link
	from link.Link
}

func (c crosswise) Recv(b []link.Buf) int             { return c.from.Recv(b) }
func (c crosswise) Free(b []link.Buf)                 { c.from.Free(b) }
func (c crosswise) Source(b *link.Buf) netip.AddrPort { return c.from.Source(b) }
func (c crosswise) Send(b []link.Buf) {
	for i := range b { // an answer in a received frame leaves on the link where the frame arrived
		if b[i].Path == link.PathReply {
			c.from.Send(b[i : i+1])
		} else {
			c.Link.Send(b[i : i+1])
		}
	}
}

// A connection must work if all its packets arrive on the wrong one of two queues.
func TestStraysCross(t *testing.T) { straysCross(t, nil, 0) }

// The same with engines that have the last two numbers: a third one has none.
func TestStraysCrossLastEngines(t *testing.T) { straysCross(t, nil, maxEngines-2) }

func straysCross(t *testing.T, keys *seal.Limits, firstEngine uint8) {
	w := newSecureWorld(t, simlink.Config{Delay: time.Microsecond}, Limits{}, keys, 1)
	a := w.nodes[0]
	l := [2]*simlink.Link{}
	for i := range l {
		l[i] = w.net.Link(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), 17473))
	}
	h, err := NewHost(randReader{randSource(5)}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	w.secure(h)
	h.SetFirstEngine(firstEngine)
	var nodes [2]*node
	for i := range nodes {
		n := &node{t: t, host: h, link: l[i], addr: l[i].Local()}
		if n.eng, err = h.NewEngine(crosswise{l[i], l[1-i]}, 0); err != nil {
			t.Fatal(err)
		}
		n.recv, n.request, n.connect = NewQueue(64, nil, nil), NewQueue(64, nil, nil), NewQueue(64, nil, nil)
		nodes[i] = n
		w.nodes = append(w.nodes, n)
	}
	if firstEngine > 0 {
		if _, err := h.NewEngine(l[0], 0); err == nil {
			t.Fatal("an engine has no number")
		}
	}
	if err := a.host.Listen(service, a); err != nil {
		t.Fatal(err)
	}
	b := nodes[0]
	ca, cb := a.host.NewConn(plain), h.NewConn(plain)
	w.dial(b, a, cb, nil)
	w.until("request", time.Second, func() bool { return len(a.arrived) > 0 })
	w.accept(a, ca, nil)
	w.until("establishment", time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
	if got := cb.cid >> (genBits + slotBits); got != uint32(firstEngine) {
		t.Errorf("engine %d in the connection ID, want %d", got, firstEngine)
	}
	src, dst := b.memory(4000), a.memory(4000)
	for i := range src.mem {
		src.mem[i] = byte(i)
	}
	b.post(cb, cb.PostWrite(src.seg(0, 4000), 1, dst.at(0), 0))
	w.until("the write", time.Second, func() bool { return b.request.Len() == 1 })
	if err := b.eng.Disconnect(cb, true); err != nil {
		t.Fatal(err)
	}
	w.until("the disconnect", time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
	w.run(time.Second)
	if got := nodes[1].eng.Stats().Strays; got == 0 {
		t.Error("no packet strayed: the test tests nothing")
	}
	if b.eng.Connections() != 0 || a.eng.Connections() != 0 {
		t.Error("table entries left")
	}
}
