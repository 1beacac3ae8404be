package xdp

import (
	"bytes"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

// Recv reports a congestion mark. In a reply, the source and destination addresses are exchanged and the mark is
// cleared. The reply goes to the MAC address of the next hop, not to the sender's MAC address, and is dropped while the
// next hop's address is unknown.
func TestReply(t *testing.T) {
	k := newFake(t, 1500)
	neighbour := k.s.router.(fixedRouter).hop
	bufs := make([]link.Buf, maxSegments)
	for i, v6 := range []bool{false, true} {
		for j, vlan := range []bool{false, true} {
			port, wantPort := uint16(0), uint16(49152) // the packet's source port
			if i == j {
				port, wantPort = 4000, 4000
			}
			src, dst := "10.0.0.2", "10.0.0.1"
			if v6 {
				src, dst = "fd00::2", "fd00::1"
			}
			in := packetFor(t, src, dst, payloadOf(100))
			if v6 {
				in[ethSize+1] |= ecnCE << 4
			} else {
				in[ethSize+v4TOS] |= ecnCE
				resum(in)
			}
			ip := ethSize
			if vlan {
				in = append(append(bytes.Clone(in[:12]), 0x81, 0, 0xe0, 0), in[12:]...)
				ip += vlanSize
			}
			k.deliver(t, in)
			if n := k.s.Recv(bufs); n != 1 || bufs[0].Flags != link.CE || bufs[0].Port != 0 {
				t.Fatalf("v6=%v vlan=%v: %d Bufs, flags %d", v6, vlan, n, bufs[0].Flags)
			}
			copy(bufs[0].Data, "answer")
			bufs[0].Data, bufs[0].Flags, bufs[0].Path, bufs[0].Port = bufs[0].Data[:7], 0, link.PathReply, port
			k.sent = nil
			k.s.Send(bufs[:1])
			if len(k.sent) != 1 {
				t.Fatalf("v6=%v vlan=%v: %d packets sent, %+v", v6, vlan, len(k.sent), k.s.Stats())
			}
			out := k.sent[0]
			l, ok := parse(out, len(out))
			if !ok || l.ce || l.size != 7 || l.ip != ip || string(out[l.payload:l.payload+6]) != "answer" {
				t.Fatalf("v6=%v vlan=%v: %+v %v of % x", v6, vlan, l, ok, out)
			}
			if sourceOf(out[ip:]).String() != dst || targetOf(out[ip:]).String() != src || !bytes.Equal(out[:6], neighbour.mac[:]) || !bytes.Equal(out[6:12], k.s.mac[:]) {
				t.Errorf("v6=%v vlan=%v: addresses % x", v6, vlan, out)
			}
			if got := be.Uint16(out[l.payload-udpSize+udpDst:]); got != wantPort {
				t.Errorf("to port %d, want %d", got, wantPort)
			}
			if got := be.Uint16(out[l.payload-udpSize+udpSrc:]); got != DefaultPort {
				t.Errorf("from port %d, to which the packet was not sent", got)
			}
			sumOver := out[ip : ip+v4Size]
			base := uint64(0)
			if v6 {
				sumOver, base = out[ip+v6Src:], uint64(be.Uint16(out[ip+v6Length:]))+protocolUDP
			}
			if fold(sum(sumOver, base)) != 0xffff {
				t.Errorf("v6=%v vlan=%v: checksum", v6, vlan)
			}
		}
	}
	neighbour.unknown = true
	k.deliver(t, packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(100)))
	k.s.Recv(bufs)
	bufs[0].Path, k.sent = link.PathReply, nil
	k.s.Send(bufs[:1])
	if d := k.s.Stats().TxDropped; d != 1 || len(k.sent) != 0 {
		t.Errorf("unknown neighbour: %d dropped, %d sent", d, len(k.sent))
	}
	neighbour.unknown = false
	// Only a fresh packet can be answered.
	k.s.Alloc(bufs[:1])
	bufs[0].Path = link.PathReply
	k.s.Send(bufs[:1])
	k.deliver(t, packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(100)))
	k.s.Recv(bufs)
	bufs[0].Data = bufs[0].Data[1:]
	if a := k.s.Source(&bufs[0]); a.IsValid() {
		t.Errorf("a source %v of moved data", a)
	}
	k.s.Send(bufs[:1])
	if d := k.s.Stats().TxDropped; d != 3 {
		t.Errorf("%d dropped, want 3", d)
	}
	conserve(t, k.s)
}

// No errno of a kick causes a panic, loses a frame or decreases a counter.
func TestErrnos(t *testing.T) {
	for _, tc := range []struct {
		errno   syscall.Errno
		times   int
		sent    int // packets, of 10, that are sent at once
		dropped uint64
	}{
		{unix.EAGAIN, 1, 10, 0}, {unix.EAGAIN, 50, 0, 0}, {unix.EINTR, 1, 10, 0}, {unix.ENOBUFS, 2, 10, 0},
		{unix.EBUSY, 3, 7, 3}, {unix.ENETDOWN, 1, 0, 0}, {unix.ENXIO, 1, 0, 0}, {unix.EINVAL, 1, 0, 0}, {unix.EPERM, 1, 0, 0},
	} {
		k := newFake(t, 1500)
		s := k.s
		to, err := s.Resolve(k.peer(), 1)
		if err != nil {
			t.Fatal(err)
		}
		for range tc.times {
			k.answers = append(k.answers, tc.errno)
		}
		bufs := make([]link.Buf, 10)
		s.Alloc(bufs)
		for i := range bufs {
			bufs[i].Path, bufs[i].Data = to, bufs[i].Data[:100]
		}
		s.Send(bufs)
		if len(k.sent) != tc.sent || s.Stats().TxDropped != tc.dropped {
			t.Errorf("%v: %d packets sent, %+v", tc.errno, len(k.sent), s.Stats())
		}
		for len(k.answers) > 0 { // the owner continues to poll
			s.Recv(bufs)
		}
		s.Recv(bufs)
		if n := s.Alloc(bufs[:1]); n != 1 {
			t.Fatalf("%v: no frame", tc.errno)
		}
		bufs[0].Path, bufs[0].Data = to, bufs[0].Data[:100]
		s.Send(bufs[:1])
		s.reap()
		if got := len(k.sent) + int(tc.dropped); got != 11 || s.Stats().TxPackets != 11 || s.pool.count[isSent] != 0 {
			t.Errorf("%v: %d packets sent in the end, %+v, frames %v", tc.errno, got, s.Stats(), s.pool.count)
		}
		conserve(t, s)
	}
}

// Packets that cannot be sent are dropped with all their frames, and each is counted.
func TestSendDrops(t *testing.T) {
	k := newFake(t, 9000)
	s := k.s
	to, err := s.Resolve(k.peer(), 1)
	if err != nil {
		t.Fatal(err)
	}
	bufs := make([]link.Buf, 30)
	var dropped uint64
	drop := func(name string, n int, change func(b []link.Buf)) {
		t.Helper()
		if s.Alloc(bufs[:n]) != n {
			t.Fatalf("%s: no frames", name)
		}
		for i := range bufs[:n] {
			bufs[i].Path, bufs[i].Flags, bufs[i].Data = to, link.More, bufs[i].Data[:10]
		}
		bufs[n-1].Flags = 0
		change(bufs[:n])
		s.Send(bufs[:n])
		if dropped++; s.Stats().TxDropped != dropped || len(k.sent) != 0 {
			t.Errorf("%s: %d sent, %+v", name, len(k.sent), s.Stats())
		}
		conserve(t, s)
	}
	drop("longer than the MTU", 3, func(b []link.Buf) {
		for i := range b {
			b[i].Data = b[i].Data[:4000]
		}
	})
	drop("too many frames", maxSegments+1, func([]link.Buf) {})
	drop("an empty frame behind", 2, func(b []link.Buf) { b[1].Data = b[1].Data[:0] })
	drop("data on the heap", 1, func(b []link.Buf) { b[0].Data = make([]byte, 5) })
	drop("data on the heap behind", 2, func(b []link.Buf) { b[1].Data = make([]byte, 5) })
	drop("data of another frame", 2, func(b []link.Buf) { b[0].Data = b[1].Data })
	drop("no such path", 1, func(b []link.Buf) { b[0].Path = to + 1 })
	s.router.(fixedRouter).hop.unknown = true
	drop("unknown neighbour", 2, func([]link.Buf) {})
	if s.pool.sending() != 0 {
		t.Errorf("frames %v", s.pool.count)
	}
}
