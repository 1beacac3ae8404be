package xdp

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

func payloadOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// A packet in pieces is handed over whole, trimmed to its UDP length, and never in two calls.
func TestReceivePieces(t *testing.T) {
	payload := payloadOf(5000)
	packet := packetFor(t, "10.0.0.2", "10.0.0.1", payload)
	padded := append(bytes.Clone(packet), make([]byte, 40)...)
	for _, tc := range []struct {
		name string
		in   [][]byte
		bufs int // wanted
	}{
		{"two", pieces(packet, 3840), 2},
		{"headers alone", pieces(packet, headers4, 3000), 3},
		{"padding in the last", pieces(padded, 3840), 2},
		{"padding in a piece of its own", pieces(padded, 3840, len(packet)), 2},
		{"padding in two pieces", pieces(padded, 3000, len(packet)-1, len(packet)+3), 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newFake(t, 9000)
			bufs := make([]link.Buf, maxSegments)
			for i, p := range tc.in {
				if n := k.s.Recv(bufs); n != 0 {
					t.Fatalf("%d Bufs before the packet was complete", n)
				}
				k.piece(t, p, i < len(tc.in)-1)
			}
			n := k.s.Recv(bufs)
			var got []byte
			for i, b := range bufs[:n] {
				got = append(got, b.Data...)
				if more := b.Flags&link.More != 0; more != (i < n-1) {
					t.Errorf("Buf %d of %d: More is %v", i, n, more)
				}
			}
			if !bytes.Equal(got, payload) || n != tc.bufs {
				t.Errorf("%d bytes in %d Bufs, want %d in %d", len(got), n, len(payload), tc.bufs)
			}
			k.s.Free(bufs[:n])
			conserve(t, k.s)
			if k.s.pool.count[isHeld] != 0 {
				t.Errorf("frames %v", k.s.pool.count)
			}
		})
	}
}

// A packet that does not fit behind others waits for the next call.
func TestReceiveDoesNotSplit(t *testing.T) {
	k := newFake(t, 9000)
	packet := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(9000-28))
	for range 3 {
		k.deliver(t, pieces(packet, 3840, 7680)...)
	}
	bufs := make([]link.Buf, 20)
	for call, want := range []int{6, 3, 0} {
		if n := k.s.Recv(bufs[:8]); n != want {
			t.Errorf("call %d: %d Bufs, want %d", call, n, want)
		}
	}
}

// What is not whole UDP for one of our addresses is dropped and counted, and its frames come back.
func TestReceiveDrops(t *testing.T) {
	k := newFake(t, 9000)
	good := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(100))
	long := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(4000))
	var many [][]byte
	for range maxSegments + 3 {
		many = append(many, good)
	}
	bad := [][][]byte{
		{good[:50]}, {packetFor(t, "10.0.0.2", "10.0.0.9", nil)}, {packetFor(t, "fd00::2", "fd00::9", nil)},
		pieces(long[:3000], 1500), pieces(long, 20), many,
	}
	bufs := make([]link.Buf, maxSegments)
	for i, b := range bad {
		for j := range b { // piece by piece: Recv looks in between
			k.piece(t, b[j], j < len(b)-1)
			if n := k.s.Recv(bufs); n != 0 {
				t.Fatalf("bad packet %d: %d Bufs", i, n)
			}
		}
		if got := k.s.Stats().RxInvalid; got != uint64(i+1) {
			t.Errorf("bad packet %d: %d counted, want %d", i, got, i+1)
		}
	}
	k.deliver(t, good)
	n := k.s.Recv(bufs)
	if n != 1 || len(bufs[0].Data) != 100 {
		t.Errorf("%d Bufs after the bad ones", n)
	}
	k.s.Free(bufs[:n])
	conserve(t, k.s)
	if k.s.pool.count[isHeld] != 0 {
		t.Errorf("frames %v", k.s.pool.count)
	}
}

// Descriptors that point nowhere are survived.
func TestBadDescriptors(t *testing.T) {
	packet := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(5000))
	long := func(k *fakeKernel, at uint32, change func(*desc)) { // a packet of three pieces, one of them bad
		k.deliver(t, pieces(packet, 2000, 4000)...)
		d := k.s.rx.at(at)
		change(&d)
		k.rx.slots[at&uint32(len(k.rx.slots)-1)] = d
	}
	free := func(k *fakeKernel) uint64 { return k.s.umem.addr(k.s.pool.free[0], 0) }
	for name, receive := range map[string]func(k *fakeKernel){
		"outside":               func(k *fakeKernel) { k.raw(desc{addr: 1 << 40, len: 100}) },
		"past its frame":        func(k *fakeKernel) { k.raw(desc{addr: k.fill.at(0), len: 1 << 20}) },
		"a frame that is free":  func(k *fakeKernel) { k.raw(desc{addr: free(k), len: 100}) },
		"middle outside":        func(k *fakeKernel) { long(k, 1, func(d *desc) { d.addr = 1 << 40 }) },
		"middle past its frame": func(k *fakeKernel) { long(k, 1, func(d *desc) { d.len = 1 << 20 }) },
		"end that is free":      func(k *fakeKernel) { long(k, 2, func(d *desc) { d.addr = free(k) }) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newFake(t, 9000)
			receive(k)
			k.comp.reserve(2)
			k.comp.put(0, 1<<40)
			k.comp.put(1, free(k)) // never sent
			k.comp.submit(2)
			bufs := make([]link.Buf, maxSegments)
			if n := k.s.Recv(bufs); n != 0 {
				t.Errorf("%d Bufs", n)
			}
			k.s.Alloc(bufs)
			if k.s.Stats().RxInvalid == 0 {
				t.Error("nothing was counted as invalid")
			}
			conserve(t, k.s)
		})
	}
}

// A mark is reported, and an answer goes back with addresses exchanged and no mark.
func TestReply(t *testing.T) {
	k := newFake(t, 1500)
	bufs := make([]link.Buf, maxSegments)
	for _, v6 := range []bool{false, true} {
		for _, vlan := range []bool{false, true} {
			src, dst := "10.0.0.2", "10.0.0.1"
			if v6 {
				src, dst = "fd00::2", "fd00::1"
			}
			in := packetFor(t, src, dst, payloadOf(100))
			if v6 {
				in[ethSize+1] |= ecnCE << 4
			} else {
				in[ethSize+v4TOS] |= ecnCE
			}
			ip := ethSize
			if vlan {
				in = append(append(bytes.Clone(in[:12]), 0x81, 0, 0, 7), in[12:]...)
				ip += vlanSize
			}
			k.deliver(t, in)
			if n := k.s.Recv(bufs); n != 1 || bufs[0].Flags != link.CE {
				t.Fatalf("v6=%v vlan=%v: %d Bufs, flags %d", v6, vlan, n, bufs[0].Flags)
			}
			copy(bufs[0].Data, "answer")
			bufs[0].Data, bufs[0].Flags, bufs[0].Path = bufs[0].Data[:7], 0, link.PathReply
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
			if sourceOf(out[ip:]).String() != dst || targetOf(out[ip:]).String() != src || !bytes.Equal(out[:6], in[6:12]) || !bytes.Equal(out[6:12], k.s.mac[:]) {
				t.Errorf("v6=%v vlan=%v: addresses % x", v6, vlan, out)
			}
			if port := be.Uint16(out[l.payload-udpSize+udpDst:]); port != DefaultPort {
				t.Errorf("to port %d", port)
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
	// A reply is made of a fresh packet only.
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
	if d := k.s.Stats().TxDropped; d != 2 {
		t.Errorf("%d dropped, want 2", d)
	}
	conserve(t, k.s)
}

// Where the kernel gives no counts, those it gave last stay: a counter does not go back.
func TestKernelStatsStay(t *testing.T) {
	s := newFake(t, 1500).s
	s.kernel.Rx_ring_full = 5
	was := s.fd
	s.fd = 1 << 30 // no file
	defer func() { s.fd = was }()
	if got := s.KernelStats().RxRingFull; got != 5 || s.Stats().RxDropped != 5 {
		t.Errorf("rx ring full %d times after a read that failed, want 5", got)
	}
}

// No answer of the kernel panics, loses a frame, or has a counter go back.
func TestErrnos(t *testing.T) {
	for _, tc := range []struct {
		errno   syscall.Errno
		times   int
		sent    int // at once, of 10
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
		for len(k.answers) > 0 { // the owner goes on polling
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

// Packets that cannot be sent are dropped whole and counted one by one.
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

// A kernel on another goroutine moves every packet once and in order; the race detector watches the
// frames, which are plain memory.
func TestConcurrentKernel(t *testing.T) {
	k := newFake(t, 1500)
	s := k.s
	s.kick = func(bool) syscall.Errno { runtime.Gosched(); return unix.EAGAIN }
	to, err := s.Resolve(k.peer(), 1)
	if err != nil {
		t.Fatal(err)
	}
	const total = 20_000
	var quit atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() { // reflects what is sent
		want := uint32(0)
		for !quit.Load() {
			k.transmit(16)
			for _, p := range k.sent {
				if got := binary.BigEndian.Uint32(p[headers4:]); got != want {
					t.Errorf("packet %d is number %d", want, got)
				}
				want++
				for k.fill.refresh() == 0 && !quit.Load() {
					runtime.Gosched()
				}
				copy(p[ethSize+v4Dst:], []byte{10, 0, 0, 1})
				if !quit.Load() {
					k.deliver(t, p)
				}
			}
			k.sent = k.sent[:0]
			runtime.Gosched()
		}
	})
	r := rand.New(rand.NewPCG(3, 4))
	bufs := make([]link.Buf, 32)
	var held []link.Buf
	sent, received := uint32(0), uint32(0)
	for received < total {
		n := s.Alloc(bufs[:r.IntN(len(bufs))])
		n = min(n, int(total-sent))
		for i := range bufs[:n] {
			bufs[i].Path, bufs[i].Data = to, bufs[i].Data[:64]
			binary.BigEndian.PutUint32(bufs[i].Data, sent)
			sent++
		}
		s.Send(bufs[:n])
		n = s.Recv(bufs)
		for _, b := range bufs[:n] {
			if got := binary.BigEndian.Uint32(b.Data); got != received {
				t.Fatalf("packet %d is number %d", received, got)
			}
			received++
		}
		if held = append(held, bufs[:n]...); len(held) > 50 {
			s.Free(held)
			held = held[:0]
		}
		runtime.Gosched()
	}
	quit.Store(true)
	wg.Wait()
	s.Free(held)
	s.reap()
	conserve(t, s)
}

// BenchmarkVerbs is what our own code costs, per packet, with a kernel that does nothing.
func BenchmarkVerbs(b *testing.B) {
	const batch = 32
	for _, kind := range verbKinds {
		b.Run("send/"+kind.name, func(b *testing.B) {
			k := newFake(b, 1500)
			s := k.s
			s.kick = func(bool) syscall.Errno { k.complete(); return 0 }
			to, err := s.Resolve(k.peer(), 1)
			if err != nil {
				b.Fatal(err)
			}
			v := kind.of(s)
			bufs := make([]link.Buf, batch)
			b.ReportAllocs()
			for b.Loop() {
				n := s.Alloc(bufs)
				for i := range bufs[:n] {
					bufs[i].Data, bufs[i].Path = bufs[i].Data[:64], to
				}
				v.send(bufs[:n])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/packet")
		})
		b.Run("recv/"+kind.name, func(b *testing.B) {
			k := newFake(b, 1500)
			v := kind.of(k.s)
			packet := packetFor(b, "10.0.0.2", "10.0.0.1", payloadOf(64))
			for f := range k.s.umem.frames() {
				copy(k.s.umem.bytes(f, rxHeadRoom, uint32(len(packet))), packet)
			}
			bufs := make([]link.Buf, batch)
			b.ReportAllocs()
			for b.Loop() {
				k.refresh(batch, uint32(len(packet)))
				n := v.recv(bufs)
				k.s.Free(bufs[:n])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/packet")
		})
	}
}
