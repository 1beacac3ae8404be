package xdp

import (
	"bytes"
	"os"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/link"
)

// The peer receives packets whose payload lies in the device's memory. Each Buf of such a packet still has a frame, and
// all frames return to the pool. The test sends more packets than the ring has slots.
func TestSendInPlace(t *testing.T) {
	const size, packets = 1 << 20, 300
	m, err := newMemory(size)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.recycle(); err != nil {
			t.Error(err)
		}
	}()
	for i := range m {
		m[i] = byte(i) ^ byte(i>>8)
	}
	p := newPair(t, pairOptions{mtu: 9000, memory: m})
	s, to := p.ends[lab.A], p.path(t, lab.A)
	block := s.Caps().Block
	if &s.Caps().Memory[0] != &m[0] || len(m)%block != 0 {
		t.Fatalf("memory of %d bytes in blocks of %d", len(s.Caps().Memory), block)
	}
	for i := range packets {
		bufs := make([]link.Buf, 5)
		for got := 0; got < len(bufs); {
			got += s.Alloc(bufs[got:])
		}
		at := (i*5003)%(size-2*block) + 1
		piece := m[at : at+5000]
		want := append([]byte{byte(i)}, piece...)
		want = append(want, "end"...)
		bufs[0].Path, bufs[0].Data[0] = to, byte(i)
		bufs[0].Data = bufs[0].Data[:1]
		n := 1
		for ; len(piece) > 0; n++ {
			k := min(len(piece), block-at%block)
			bufs[n].Data, piece, at = piece[:k], piece[k:], at+k
		}
		s.Free(bufs[n+1:])
		bufs = bufs[:n+1]
		for k := range bufs[:n] {
			bufs[k].Flags = link.More
		}
		bufs[n].Data = bufs[n].Data[:copy(bufs[n].Data, "end")]
		s.Send(bufs)
		if got := collect(t, p.ends[lab.B], 1)[0]; !bytes.Equal(got, want) {
			t.Fatalf("packet %d: %d bytes arrived that are not the %d sent", i, len(got), len(want))
		}
	}
	settled(t, s)
	self, err := s.Resolve(s.Local(), 7)
	if err != nil {
		t.Fatal(err)
	}
	bufs := make([]link.Buf, 2)
	s.Alloc(bufs)
	bufs[0].Path, bufs[0].Data, bufs[0].Flags = self, bufs[0].Data[:1], link.More
	bufs[1].Data = m[block : 2*block]
	s.Send(bufs)
	want := bytes.Clone(m[block : 2*block])
	m[block]++ // allowed, because the packet has been transmitted
	if got := collect(t, s, 1)[0]; !bytes.Equal(got[1:], want) {
		t.Error("what was sent to ourselves changed on the way")
	}
	if len(s.lent) != 0 {
		t.Errorf("%d frames stand for nothing", len(s.lent))
	}
	// Data that crosses the end of a block, or is a packet's first piece, is refused. No frame is lost.
	for _, first := range []int{0, 1} {
		bufs := make([]link.Buf, 2)
		s.Alloc(bufs)
		bufs[0].Data, bufs[0].Path, bufs[0].Flags = bufs[0].Data[:10], to, link.More
		bufs[1].Data = bufs[1].Data[:10]
		bufs[first].Data = m[block-5*first : block+5]
		was := s.Stats().TxDropped
		s.Send(bufs)
		if s.Stats().TxDropped != was+1 {
			t.Errorf("Buf %d: the packet was not refused", first)
		}
	}
	settled(t, s)
}

// The next device uses the same memory again, without the data of the earlier device.
func TestMemoryAgain(t *testing.T) {
	m, err := newMemory(3 * os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	m[7] = 1
	if err := m.recycle(); err != nil {
		t.Fatal(err)
	}
	again, err := newMemory(3*os.Getpagesize() + 1) // rounded up to the same power of two
	if err != nil {
		t.Fatal(err)
	}
	if &again[0] != &m[0] || again[7] != 0 {
		t.Error("another mapping, or what was in it")
	}
	if err := again.recycle(); err != nil {
		t.Fatal(err)
	}
}
