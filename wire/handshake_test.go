package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// A request must arrive once, however often Connect is repeated and whichever answers are lost.
func TestRejectOnce(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	for i := range 2*maxRejected + 3 {
		c := a.host.NewConn(plain)
		w.dial(a, b, c, nil)
		w.until("request", time.Second, func() bool { return len(b.arrived) == 1 })
		path, err := b.link.Resolve(b.arrived[0].From, 1)
		if err != nil {
			t.Fatal(err)
		}
		w.net.Partition(a.addr, b.addr, i%2 == 0)
		if err := b.eng.Reject(b.arrived[0], path, []byte("no")); err != nil {
			t.Fatal(err)
		}
		w.run(time.Millisecond)
		w.net.Partition(a.addr, b.addr, false)
		w.until("rejection", time.Second, func() bool { return c.State() == Closed })
		w.want(a.connect, KindPeerRejected)
		if got := string(c.PeerPrivate()); got != "no" {
			t.Errorf("reject carries %q", got)
		}
		if len(b.arrived) != 1 {
			t.Fatalf("%d requests of one", len(b.arrived))
		}
		b.arrived = b.arrived[:0]
		if b.eng.halfOpen.used != 0 || len(b.eng.requests) > maxRejected || b.link.Paths() > maxRejected {
			t.Fatalf("%d requests are open, %d remembered, %d paths", b.eng.halfOpen.used, len(b.eng.requests), b.link.Paths())
		}
	}
}

// flagged counts the packets that an engine sends, by type and by whether they have link.Unconnected.
type flagged struct {
	link.Link
	packets map[proto.Type][2]int
}

func (f *flagged) Send(bufs []link.Buf) {
	for i := range bufs {
		var h proto.Header
		if !h.Parse(bufs[i].Data) {
			continue
		}
		n := f.packets[h.Type]
		if bufs[i].Flags&link.Unconnected != 0 {
			n[1]++
		} else {
			n[0]++
		}
		f.packets[h.Type] = n
	}
	f.Link.Send(bufs)
}

// A Reject of the program leaves within the link's share of packets without a connection. Packets of a connection have
// no such limit.
func TestRejectIsUnconnected(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	f := &flagged{b.link, make(map[proto.Type][2]int)}
	b.eng.link = f
	w.pair(plain)
	b.arrived = nil
	c := a.host.NewConn(plain)
	w.dial(a, b, c, nil)
	w.until("request", time.Second, func() bool { return len(b.arrived) == 1 })
	path, err := b.link.Resolve(b.arrived[0].From, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.eng.Reject(b.arrived[0], path, nil); err != nil {
		t.Fatal(err)
	}
	w.until("rejection", time.Second, func() bool { return c.State() == Closed })
	for packet, n := range f.packets {
		if packet == proto.Reject && n != [2]int{0, 1} || packet == proto.Accept && n[0] == 0 || packet != proto.Reject && n[1] != 0 {
			t.Errorf("%v: %d packets without the flag, %d with it", packet, n[0], n[1])
		}
	}
	if len(f.packets) < 3 {
		t.Errorf("only packets of these types: %v", f.packets)
	}
}

// TestLateDuplicateOfAccept: the network delivers a copy of Accept when the connection already exchanges data. The copy is
// not counted as forged, which would be a sign of an attack.
func TestLateDuplicateOfAccept(t *testing.T) {
	for name, keys := range map[string]*seal.Limits{"plaintext": nil, "secure": usual} {
		t.Run(name, func(t *testing.T) {
			w := newSecureWorld(t, simlink.Config{Delay: time.Microsecond}, Limits{}, keys, 2)
			a, b := w.nodes[0], w.nodes[1]
			var accept []byte
			w.tap(b, &tap{show: func(packet []byte) {
				if typeOf(packet) == proto.Accept {
					accept = packet
				}
			}})
			ca, cb := w.pair(plain)
			m := a.memory(8)
			b.postRecv(cb, b.memory(8).seg(0, 8), 1)
			a.post(ca, ca.PostSend(m.seg(0, 8), 1, 0))
			w.until("a message", time.Second, func() bool { return a.request.Len() == 1 })
			before := a.eng.Stats()
			var frame [1]link.Buf
			if b.link.Alloc(frame[:]) != 1 {
				t.Fatal("no frame")
			}
			frame[0].Data, frame[0].Path = frame[0].Data[:copy(frame[0].Data, accept)], cb.path
			b.link.Send(frame[:])
			w.run(time.Millisecond)
			after := a.eng.Stats()
			if got := after.RxPackets - before.RxPackets; got == 0 {
				t.Error("the copy did not arrive")
			}
			if after.Forged+after.UnknownConnection+after.BadPackets+after.ProtocolErrors != 0 || ca.State() != Established {
				t.Errorf("%v after a copy of Accept: %+v", ca.State(), after.Counters)
			}
		})
	}
}
