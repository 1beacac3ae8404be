package simlink

import (
	"bytes"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

// sendGroup sends packets of the given sizes from a to b in one batch. All bytes of packet i are i+1.
func (p *pair) sendGroup(sizes ...int) {
	p.t.Helper()
	bufs := make([]link.Buf, len(sizes))
	if n := p.a.Alloc(bufs); n != len(bufs) {
		p.t.Fatalf("Alloc = %d, want %d", n, len(bufs))
	}
	for i, n := range sizes {
		bufs[i].Data, bufs[i].Path = bufs[i].Data[:n], p.ab
		for k := range bufs[i].Data {
			bufs[i].Data[k] = byte(i + 1)
		}
	}
	p.a.Send(bufs)
}

// check fails unless the packet has the given size, the bytes of sendGroup, and no room behind it.
func (p *pair) check(b *link.Buf, i, size int) {
	p.t.Helper()
	if want := bytes.Repeat([]byte{byte(i + 1)}, size); !bytes.Equal(b.Data, want) || cap(b.Data) != size {
		p.t.Errorf("packet %d: %d bytes, first ones %v, room for %d; want %d", i, len(b.Data), b.Data[:min(4, len(b.Data))], cap(b.Data), size)
	}
	if p.b.Source(b) != addrA {
		p.t.Errorf("packet %d is from %v", i, p.b.Source(b))
	}
}

// Packets of one batch and size share a block, up to a shorter one. The block is free when all of them are.
func TestGroupsShareABlock(t *testing.T) {
	for _, immediate := range []bool{false, true} {
		p := newPair(t, Config{Immediate: immediate, Group: 3000})
		sizes := []int{100, 100, 40, 100, 1000, 1000, 1000, 1000, 50} // four groups, of 3, 1, 3 and 2 packets
		p.sendGroup(sizes...)
		p.sendGroup(50)
		p.net.deliverAll()
		bufs := make([]link.Buf, 2)
		for i := 0; i < len(sizes); i += 2 {
			n := p.b.Recv(bufs)
			if want := min(2, len(sizes)+1-i); n != want {
				t.Fatalf("Recv = %d, want %d", n, want)
			}
			for k := range min(n, len(sizes)-i) {
				p.check(&bufs[k], i+k, sizes[i+k])
			}
			if i == 0 {
				if free := len(p.b.merged.free); free != 63 {
					t.Errorf("%d blocks are free while packets of one are held", free)
				}
			}
			p.b.Free(bufs[:n])
		}
		if n, free := p.b.Recv(bufs), len(p.b.merged.free); n != 0 || free != 64 || p.b.Outstanding() != 0 {
			t.Errorf("%d more packets, %d free blocks, %d frames outstanding", n, free, p.b.Outstanding())
		}
		if s := p.b.Stats(); s.RxGroups != 3 || s.RxPackets != 10 {
			t.Errorf("%+v, want 3 groups of 10 packets", s)
		}
	}
}

// Each packet of a group is lost on its own, and the others arrive.
func TestLossInsideGroups(t *testing.T) {
	for _, immediate := range []bool{false, true} {
		p := newPair(t, Config{Immediate: immediate, Group: 64000, Loss: 0.2})
		const groups, packets = 50, 40
		sizes := make([]int, packets)
		for i := range sizes {
			sizes[i] = 1400
		}
		got, holes, bufs := 0, 0, make([]link.Buf, packets)
		for range groups {
			p.sendGroup(sizes...)
			p.net.deliverAll()
			last := 0
			n := p.b.Recv(bufs)
			for i := range bufs[:n] {
				psn := int(bufs[i].Data[0])
				p.check(&bufs[i], psn-1, 1400)
				if psn <= last {
					t.Errorf("packet %d follows packet %d", psn, last)
				}
				if psn > last+1 {
					holes++
				}
				last = psn
			}
			got += n
			p.b.Free(bufs[:n])
		}
		if s := p.b.Stats(); s.RxGroups != groups {
			t.Errorf("%d of %d groups arrived", s.RxGroups, groups)
		}
		if lost := groups*packets - got; lost < groups*packets/8 || lost > groups*packets/4 || holes < lost/2 {
			t.Errorf("%d of %d packets are lost, in %d holes", lost, groups*packets, holes)
		}
	}
}

// A kept packet leaves its block, and the only block of a link serves all packets.
func TestKeepFreesTheBlock(t *testing.T) {
	p := newPair(t, Config{Group: 3000, Blocks: 1})
	bufs, kept := make([]link.Buf, 8), []link.Buf{}
	for range 20 {
		p.sendGroup(100, 100)
		p.net.deliverAll()
		if n := p.b.Recv(bufs); n != 2 {
			t.Fatalf("Recv = %d, want 2", n)
		}
		p.b.Keep(bufs[:1])
		kept = append(kept, bufs[0])
		p.b.Free(bufs[1:2])
	}
	for i := range kept {
		if !bytes.Equal(kept[i].Data, bytes.Repeat([]byte{1}, 100)) || p.b.Source(&kept[i]) != addrA {
			t.Errorf("kept packet %d is changed", i)
		}
	}
	p.b.Free(kept)
	if p.b.Outstanding() != 0 {
		t.Errorf("%d frames outstanding", p.b.Outstanding())
	}
}

// A packet of a group that is held without Keep is a mistake of the holder, and so is a write to a packet that was freed.
func TestMisuseOfGroups(t *testing.T) {
	p := newPair(t, Config{Group: 3000, Blocks: 1})
	bufs := make([]link.Buf, 8)
	p.sendGroup(100, 100)
	p.net.deliverAll()
	p.b.Recv(bufs)
	p.b.Free(bufs[:1])
	mustPanic(t, "double Free", func() { p.b.Free(bufs[:1]) })
	mustPanic(t, "Recv", func() { p.b.Recv(bufs[2:]) })

	p = newPair(t, Config{Group: 3000, Blocks: 1})
	p.sendGroup(100, 100)
	p.net.deliverAll()
	p.b.Recv(bufs)
	p.b.Free(bufs[:2])
	bufs[1].Data[0]++
	p.sendGroup(100)
	p.net.deliverAll()
	mustPanic(t, "Recv", func() { p.b.Recv(bufs) })
}

// A reply in a packet of a group reaches the sender and frees the packet.
func TestReplyInGroup(t *testing.T) {
	p := newPair(t, Config{Group: 3000})
	p.sendGroup(100, 100)
	p.net.deliverAll()
	bufs := make([]link.Buf, 8)
	n := p.b.Recv(bufs)
	for i := range bufs[:n] {
		bufs[i].Path = link.PathReply
	}
	p.b.Send(bufs[:n])
	p.net.deliverAll()
	if got := receive(p.a); len(got) != 2 || len(got[1]) != 100 || got[1][0] != 2 {
		t.Errorf("replies %q", got)
	}
	if free := len(p.b.merged.free); free != 64 || p.b.Outstanding() != 0 {
		t.Errorf("%d free blocks, %d frames outstanding", free, p.b.Outstanding())
	}
}

// Packets beyond the receive window are dropped and counted.
func TestReceiveWindow(t *testing.T) {
	p := newPair(t, Config{Group: 3000, RxWindow: 5})
	p.sendGroup(100, 100, 100, 100, 100, 100, 100)
	p.net.deliverAll()
	if got := receive(p.b); len(got) != 5 || p.b.Stats().RxDropped != 2 {
		t.Errorf("%d packets arrived, %d were dropped", len(got), p.b.Stats().RxDropped)
	}
}

// Wait returns at once while a part of a group is not received.
func TestWaitWithPartOfGroup(t *testing.T) {
	p := newPair(t, Config{Immediate: true, Group: 3000})
	p.sendGroup(100, 100)
	bufs := make([]link.Buf, 1)
	for range 2 {
		done := make(chan struct{})
		go func() { p.b.Wait(-1); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("Wait sleeps")
		}
		p.b.Recv(bufs)
		p.b.Free(bufs)
	}
}

// The packets of a group arrive together, when the last one has been transmitted.
func TestGroupArrivesTogether(t *testing.T) {
	p := newPair(t, Config{Delay: 10 * time.Microsecond, Rate: 1e9, Group: 3000})
	p.sendGroup(1000-wireOverhead, 1000-wireOverhead, 1000-wireOverhead, 500-wireOverhead)
	for i, want := range []struct{ at, packets int64 }{{10_000 + 3*8000, 3}, {10_000 + 3*8000 + 4000, 1}} {
		if at, ok := p.net.Next(); !ok || at != want.at {
			t.Errorf("group %d arrives at %d, want %d", i, at, want.at)
		}
		p.net.Advance(want.at)
		if got := receive(p.b); len(got) != int(want.packets) {
			t.Errorf("group %d has %d packets, want %d", i, len(got), want.packets)
		}
	}
}
