package xdp

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

// Packets that belong to no connection take a quarter of the tx ring while their frames are not completed, and further
// ones are dropped. Packets of connections use the rest of the ring.
func TestUnconnectedPacketsHaveAShare(t *testing.T) {
	k := newFake(t, 1500)
	k.batch = 0 // no frame is completed
	s := k.s
	to, err := s.Resolve(k.peer(), 1)
	if err != nil {
		t.Fatal(err)
	}
	bufs := make([]link.Buf, 128)
	const share = 128 / unconnectedShare
	for range share {
		k.deliver(t, packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(100)))
		if s.Recv(bufs) != 1 {
			t.Fatal("nothing received")
		}
		bufs[0].Path = link.PathReply
		s.Send(bufs[:1])
		refused := message(t, s, to, 100, 1)
		refused[0].Flags = link.Unconnected
		if s.pool.count[isReply] == share {
			s.Send(refused)
			continue
		}
		s.Free(refused)
	}
	if st := s.Stats(); st.TxPackets != share || st.TxDropped != 1 || s.pool.count[isReply] != share {
		t.Errorf("%+v, frames %v", st, s.pool.count)
	}
	n := s.Alloc(bufs)
	for i := range bufs[:n] {
		bufs[i].Path, bufs[i].Data = to, bufs[i].Data[:100]
	}
	s.Send(bufs[:n])
	if st := s.Stats(); n != 128-share || st.TxPackets != 128 || st.TxDropped != 1 {
		t.Errorf("%d frames, %+v", n, st)
	}
	k.complete()
	s.reap()
	packet := message(t, s, to, 100, 1)
	packet[0].Flags = link.Unconnected
	s.Send(packet)
	if st := s.Stats(); st.TxPackets != 129 || s.pool.inFlight() != 1 {
		t.Errorf("%+v, frames %v", st, s.pool.count)
	}
	conserve(t, s)
}

// A receiver holds all packets that the tx ring has room for. The kernel has taken all of them, so the send buffer does
// not limit the ring. The device does not end, although it could not open the queue again, and goes on when the receiver
// frees the packets.
func TestHeldPackets(t *testing.T) {
	l := newLab(t, 1500, 1)
	w := &witness{heard: make(chan string, 100), ended: make(chan error, 1)}
	o := DefaultOptions()
	a := openDevice(t, l, lab.A, o) // and none on side B, where an XDP program would copy the packets
	a.Watch(w)
	holds := netip.MustParseAddr("10.73.0.250")
	onSide(t, l, lab.B, func() error { return labtest.AddAddress(lab.Interface, netip.PrefixFrom(holds, 32)) })
	drop := labtest.Hold(t, l, lab.B, holds)
	onSide(t, l, lab.A, func() error { return labtest.SetNeighbour(lab.Interface, holds, lab.B.MAC()) })
	w.own.Lock()
	s := a.sockets[0]
	to, err := s.Resolve(netip.AddrPortFrom(holds, DefaultPort), 1)
	if err != nil {
		t.Fatal(err)
	}
	awaitNeighbour(t, s, to)
	bufs := make([]link.Buf, 64)
	for range 2 * o.TxRing / len(bufs) { // the queue of side B lets the first packets go
		n := s.Alloc(bufs)
		for i := range bufs[:n] {
			bufs[i].Path, bufs[i].Data = to, bufs[i].Data[:200]
		}
		s.Send(bufs[:n])
	}
	if n := s.tx.backlog(); n != 0 || int(s.pool.inFlight()) != o.TxRing {
		t.Errorf("%d packets wait for the send buffer, %d in flight", n, s.pool.inFlight())
	}
	w.own.Unlock()
	w.hears(t, "receivers hold")
	drop()
	w.hears(t, "moves again")
	if h := s.Health(); h.Reopens != 0 {
		t.Errorf("%+v", h)
	}
	w.own.Lock()
	defer w.own.Unlock()
	settled(t, s)
	exchange(t, a, openDevice(t, l, lab.B, o))
}
