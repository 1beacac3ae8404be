package udplink

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

// needOffload skips a test on a kernel without UDP_SEGMENT or UDP_GRO.
func needOffload(t *testing.T, l *Link) *batch {
	t.Helper()
	s := l.sock.(*batch)
	if !s.offload.segment || !s.offload.merge {
		t.Skipf("this kernel has no offload: %+v", s.offload)
	}
	return s
}

// spare returns the number of blocks that hold no packet.
func (s *batch) spare() int { return len(s.free) + s.merged.armed - s.merged.end }

// collect receives n packets, at most limit per call, and returns copies of them.
func collect(t *testing.T, l *Link, n, limit int) (got []string) {
	t.Helper()
	bufs := make([]link.Buf, limit)
	for len(got) < n {
		some := receive(t, l, bufs)
		for i := range some {
			got = append(got, string(some[i].Data))
		}
		l.Free(some)
	}
	return got
}

// packet returns a packet of a given size that differs from others.
func packet(i, size int) string { return strings.Repeat(fmt.Sprint(i%10), size) }

// Packets of equal size that are sent in a row cross the kernel as one message, and arrive as they were sent.
func TestGroup(t *testing.T) {
	for _, pair := range [][2]netip.Addr{{host1, host2}, {host6, host6}} {
		for _, noOffload := range []bool{false, true} {
			o := Options{Port: freePort(t, pair[0], pair[1]), NoOffload: noOffload}
			a := mustOpen(t, pair[0], o)
			o.Port = freePort(t, pair[1])
			b := mustOpen(t, pair[1], o)
			if !noOffload {
				needOffload(t, b)
			}
			var sent []string
			for i, size := range []int{1400, 1400, 1400, 900, 900, 0, 0, 1, 1, 2, 1, 1400} {
				sent = append(sent, packet(i, size))
			}
			send(t, a, mustResolve(t, a, b.Local()), sent...)
			got := collect(t, b, len(sent), 5)
			if strings.Join(got, ",") != strings.Join(sent, ",") {
				t.Errorf("%v: other packets arrived", pair[0])
			}
			// The groups are 1400 1400 1400 900, 1 1 and 2 1.
			tx, rx := a.Stats(), b.Stats()
			groups := uint64(3)
			if noOffload {
				groups = 0
			}
			if tx.TxGroups != groups || rx.RxGroups != groups || tx.TxPackets != 12 || rx.RxPackets != 12 || tx.TxBytes != rx.RxBytes {
				t.Errorf("%v: sent %+v, received %+v, want %d groups", pair[0], tx, rx, groups)
			}
		}
	}
}

// A packet that is marked as single joins no group, neither that before it nor one with those after it.
func TestSinglePacketJoinsNoGroup(t *testing.T) {
	o := Options{Port: freePort(t, host1, host2)}
	a, b := mustOpen(t, host1, o), mustOpen(t, host2, o)
	needOffload(t, b)
	to := mustResolve(t, a, b.Local())
	bufs := make([]link.Buf, 5)
	if n := a.Alloc(bufs); n != len(bufs) {
		t.Fatalf("Alloc = %d", n)
	}
	for i, size := range []int{1400, 1400, 1400, 1400, 100} {
		bufs[i].Data, bufs[i].Path = bufs[i].Data[:size], to
	}
	bufs[2].Flags = link.Single
	a.Send(bufs)
	collect(t, b, len(bufs), 5)
	if s := a.Stats(); s.TxGroups != 2 || s.TxPackets != 5 { // the first two packets, and the last two
		t.Errorf("%d groups, %d packets", s.TxGroups, s.TxPackets)
	}
}

// Each packet of a group has the congestion mark of the group, and a reply to any of them reaches the sender.
func TestGroupIsAnswered(t *testing.T) {
	o := Options{Port: freePort(t, host1, host2)}
	a, b := mustOpen(t, host1, o), mustOpen(t, host2, o)
	needOffload(t, b)
	if err := unix.SetsockoptInt(a.sock.(*batch).fd, unix.IPPROTO_IP, unix.IP_TOS, ecnCE); err != nil {
		t.Fatal(err)
	}
	send(t, a, mustResolve(t, a, b.Local()), "111", "222", "333")
	bufs := make([]link.Buf, 8)
	some := receive(t, b, bufs)
	for i := range some {
		if some[i].Flags != link.CE || b.Source(&some[i]) != a.Local() {
			t.Errorf("packet %d: flags %v from %v", i, some[i].Flags, b.Source(&some[i]))
		}
		some[i].Path = link.PathReply
	}
	some[1].Port = a.Local().Port() // a reply to another port must not change the address of its neighbours
	b.Send(some)
	if got := strings.Join(collect(t, a, 3, 8), ","); got != "111,222,333" {
		t.Errorf("replies %s", got)
	}
	if n := b.sock.(*batch).spare(); n != mergedBlocks {
		t.Errorf("%d of %d blocks are free", n, mergedBlocks)
	}
}

// A holder that keeps one packet of each group does not occupy the memory of the groups.
func TestKeptPacketsReturnTheirGroup(t *testing.T) {
	o := Options{Port: freePort(t, host1, host2)}
	a, b := mustOpen(t, host1, o), mustOpen(t, host2, o)
	s := needOffload(t, b)
	p := mustResolve(t, a, b.Local())
	bufs := make([]link.Buf, 8)
	var held []link.Buf
	if n := b.Caps().RxFrames; n < 2*192 { // a connection may keep half of them
		t.Errorf("%d packets may be kept: early packets of a connection with the largest congestion window do not fit", n)
	}
	for i := range b.Caps().RxFrames {
		send(t, a, p, packet(i, 100), packet(i, 100))
		for n := 0; n < 2; {
			some := receive(t, b, bufs)
			for k := range some {
				if n++; n == 1 {
					b.Keep(some[k : k+1])
					held = append(held, some[k])
				} else {
					b.Free(some[k : k+1])
				}
			}
		}
	}
	if s.spare() != mergedBlocks {
		t.Errorf("%d of %d blocks are free while %d packets are held", s.spare(), mergedBlocks, len(held))
	}
	for i := range held {
		if string(held[i].Data) != packet(i, 100) || b.Source(&held[i]) != a.Local() {
			t.Errorf("held packet %d changed", i)
		}
	}
	send(t, a, p, "one more") // a holder that keeps more than it may occupies blocks, and no more
	some := receive(t, b, bufs)
	b.Keep(some)
	b.Free(some)
	b.Free(held)
	if s.spare() != mergedBlocks || len(s.merged.kept) != b.Caps().RxFrames+keptSpare {
		t.Errorf("%d of %d blocks and %d of %d kept frames are free", s.spare(), mergedBlocks, len(s.merged.kept), b.Caps().RxFrames+keptSpare)
	}
}

// If Recv has returned a part of a message, Wait does not sleep.
func TestWaitAfterPartOfGroup(t *testing.T) {
	o := Options{Port: freePort(t, host1, host2)}
	a, b := mustOpen(t, host1, o), mustOpen(t, host2, o)
	needOffload(t, b)
	send(t, a, mustResolve(t, a, b.Local()), "1", "2", "3")
	collect(t, b, 1, 1)
	done := make(chan struct{})
	go func() {
		b.Wait(-1)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		b.Wake()
		t.Fatal("Wait sleeps although two packets are left")
	}
	collect(t, b, 2, 8)
}

// Messages that no peer of ours sends: a device or the host of a virtual machine may.
func TestHostileMessage(t *testing.T) {
	l := mustOpen(t, host1, Options{Port: freePort(t, host1)})
	s := needOffload(t, l)
	size := l.Caps().FrameSize
	const absent = 1 << 30
	for _, tt := range []struct {
		name             string
		length, segment  int
		flags            int32
		packets, invalid int
	}{
		{name: "one packet", length: 100, segment: absent, packets: 1},
		{name: "empty", length: 0, segment: absent, packets: 1},
		{name: "empty with a size", length: 0, segment: 100, packets: 1},
		{name: "no size, too long", length: size + 1, segment: absent, invalid: 1},
		{name: "size 0", length: size + 1, segment: 0, invalid: 1},
		{name: "negative size", length: 100, segment: -1, packets: 1},
		{name: "size of the message", length: 100, segment: 100, packets: 1},
		{name: "size beyond the message", length: 100, segment: 101, packets: 1},
		{name: "short last", length: 101, segment: 50, packets: 3},
		{name: "too long, short last", length: size + 5, segment: size + 1, packets: 1, invalid: 1},
		{name: "too many", length: 1000, segment: 1, packets: maxSegments, invalid: 1000 - maxSegments},
		{name: "cut", length: 200, segment: 100, flags: unix.MSG_TRUNC, invalid: 1},
	} {
		s.armEntries(1)
		h := &s.rx[0]
		h.n, h.hdr.Flags = uint32(tt.length), tt.flags
		h.hdr.SetControllen(0)
		if tt.segment != absent {
			putControl(s.control[0][:], controlKind{unix.IPPROTO_UDP, unix.UDP_GRO}, 4)
			binary.NativeEndian.PutUint32(s.control[0][unix.SizeofCmsghdr:], uint32(tt.segment))
			h.hdr.SetControllen(unix.CmsgSpace(4))
		}
		s.merged.next, s.merged.end = 0, 1
		packets, bytesGot := 0, 0
		invalid := l.Stats().RxInvalid
		for bufs := make([]link.Buf, 50); s.merged.more(); {
			n := l.Recv(bufs)
			for i := range bufs[:n] {
				bytesGot += len(bufs[i].Data)
				if len(bufs[i].Data) > size {
					t.Errorf("%s: a packet of %d bytes in a frame of %d", tt.name, len(bufs[i].Data), size)
				}
			}
			l.Free(bufs[:n])
			packets += n
		}
		if got := int(l.Stats().RxInvalid - invalid); packets != tt.packets || got != tt.invalid {
			t.Errorf("%s: %d packets and %d invalid, want %d and %d", tt.name, packets, got, tt.packets, tt.invalid)
		}
		if s.spare() != mergedBlocks {
			t.Fatalf("%s: %d of %d blocks are free", tt.name, s.spare(), mergedBlocks)
		}
	}
}

// If the kernel refuses a group but takes its packets, they arrive, and later packets of the path leave one by one.
func TestRefusedGroup(t *testing.T) {
	o := Options{Port: freePort(t, host1, host2)}
	a, b := mustOpen(t, host1, o), mustOpen(t, host2, o)
	s := needOffload(t, a)
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil { // refuses UDP_SEGMENT with EINVAL
		t.Fatal(err)
	}
	p := mustResolve(t, a, b.Local())
	for range 2 {
		send(t, a, p, "11", "22", "3")
		if got := strings.Join(collect(t, b, 3, 8), ","); got != "11,22,3" {
			t.Errorf("%s arrived", got)
		}
	}
	if c := a.Stats(); c.TxGroups != 0 || c.TxDropped != 0 || c.TxPackets != 6 || c.TxKicks > 6 {
		t.Errorf("stats = %+v, want no group and one call for the second batch", c)
	}
}

// A group whose packets do not fit the interface is dropped, PathMTU returns the new limit, and groups that fit leave.
func TestGroupThatDoesNotFit(t *testing.T) {
	world := labtest.New(t, lab.Options{MTU: 9000})
	a := open(t, world, lab.A, lab.A.Addr4(), Options{})
	b := open(t, world, lab.B, lab.B.Addr4(), Options{})
	needOffload(t, a)
	p := mustResolve(t, a, b.Local())
	if err := world.SetMTU(1500); err != nil {
		t.Fatal(err)
	}
	long := string(make([]byte, 2000))
	send(t, a, p, long, long, long)
	if c := a.Stats(); c.TxDropped != 3 {
		t.Errorf("stats = %+v, want three drops", c)
	}
	untilPathMTU(t, a, p, 1472)
	fits := string(bytes.Repeat([]byte("x"), 1472))
	send(t, a, p, fits, fits)
	collect(t, b, 2, 8)
	if c := a.Stats(); c.TxGroups != 1 {
		t.Errorf("stats = %+v, want a group", c)
	}
}

// A receive window of full packets fits into the receive buffer of the socket, whatever buffer the kernel grants.
func TestReceiveWindowFits(t *testing.T) {
	for _, payload := range []int{1472, 8952} {
		for _, buffer := range []int{1, 212992, 4 << 20} {
			o := Options{Port: freePort(t, host1, host2), MaxPayload: payload, Buffer: buffer, NoOffload: true}
			a, b := mustOpen(t, host1, o), mustOpen(t, host2, o)
			p := mustResolve(t, a, b.Local())
			n := b.Caps().RxWindow
			for range n {
				send(t, a, p, string(make([]byte, payload)))
			}
			collect(t, b, n, 64)
			if c := b.Stats(); n < 1 || c.RxDropped != 0 {
				t.Errorf("payload %d, buffer %d: window %d, stats %+v", payload, buffer, n, c)
			}
		}
	}
}

// A holder that keeps as many packets as it may, and gives up old ones for new ones at the end of each batch, leaves
// blocks to receive into.
func TestKeptPacketsAreReplaced(t *testing.T) {
	o := Options{Port: freePort(t, host1, host2)}
	b := mustOpen(t, host2, o)
	s := needOffload(t, b)
	o.NoOffload = true // each packet has a block of its own
	a := mustOpen(t, host1, o)
	p := mustResolve(t, a, b.Local())
	bufs := make([]link.Buf, maxBatch)
	var held []link.Buf
	for range 3 * b.Caps().RxFrames / maxBatch {
		for range maxBatch {
			send(t, a, p, "early")
		}
		some := receive(t, b, bufs)
		b.Keep(some)
		old := held[:max(0, len(held)+len(some)-b.Caps().RxFrames)]
		b.Free(old)
		held = append(held[len(old):], some...)
		if s.spare() != mergedBlocks {
			t.Fatalf("%d of %d blocks are free while %d packets are held", s.spare(), mergedBlocks, len(held))
		}
	}
	b.Free(held)
}
