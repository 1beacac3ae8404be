package dat

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// TestTransferSizes tests every kind of transfer with sizes around the limits at which the code path changes: zero, a
// word, a packet, many packets, a megabyte.
func TestTransferSizes(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.pointWith(nil, 4<<20, 256), b.pointWith(nil, 4<<20, 256)
		join(x, y)
		fillRandom(x.mem, 1)
		packet := must(a.ia.Query())(t).MaxPacket
		for i, size := range []int{0, 1, 3, 4, 7, 8, 9, 255, 256, 257, packet - 60, packet - 28, packet, packet + 1, 65535, 65536, 1 << 20, 1<<20 + 1} {
			src := i * 1001
			clear(y.mem)
			ok(t, y.PostRecv(y.seg(0, size), 1, 0))
			ok(t, x.PostSend(x.seg(src, size), 2, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, size)
			x.done(x.request, 2, DTOSend, DTOSuccess, size)
			same(t, y.mem[:size], x.mem[src:src+size])

			y.memoryBarrier()
			ok(t, x.PostRDMAWrite(x.seg(src+1, size), 3, y.lmr.Remote(5, size), 0))
			x.done(x.request, 3, DTORDMAWrite, DTOSuccess, size)
			same(t, y.mem[5:5+size], x.mem[src+1:src+1+size])
			same(t, y.mem[5+size:5+size+64], make([]byte, 64))

			ok(t, y.PostRDMARead(y.seg(2<<20, size), 4, x.lmr.Remote(src+2, size), 0))
			y.done(y.request, 4, DTORDMARead, DTOSuccess, size)
			same(t, y.mem[2<<20:2<<20+size], x.mem[src+2:src+2+size])
			same(t, y.mem[2<<20+size:2<<20+size+64], make([]byte, 64))
		}
		x.still()
		y.still()
	})
}

// A message may be shorter than its receive. Both may have several segments, some of them empty.
func TestSegments(t *testing.T) {
	pieces := func(p *point, off int, sizes ...int) (iov []LMRTriplet) {
		for _, n := range sizes {
			s := p.lmr.Segment(off, n)
			if n == 0 {
				s = LMRTriplet{Context: 0xdead, Address: 0xdead} // ignored
			}
			iov = append(iov, s)
			off += n + 100
		}
		return iov
	}
	joined := func(p *point, iov []LMRTriplet) (b []byte) {
		for _, s := range iov {
			if s.Length > 0 {
				b = append(b, p.mem[s.Address-p.lmr.Address():][:s.Length]...)
			}
		}
		return b
	}
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		fillRandom(x.mem, 2)
		for _, tc := range []struct{ from, to []int }{
			{[]int{10, 20, 30, 40}, []int{100}},
			{[]int{100}, []int{1, 2, 3, 94}},
			{[]int{3000, 0, 1, 2999}, []int{0, 2999, 3001, 0}},
			{[]int{0, 0, 0, 0}, []int{5}},
			{[]int{0, 8000}, []int{4000, 1, 3998, 5000}},
			{nil, nil},
		} {
			from, to := pieces(x, 0, tc.from...), pieces(y, 20000, tc.to...)
			size := int(total(from))
			ok(t, y.PostRecv(to, 1, 0))
			ok(t, x.PostSend(from, 2, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, size)
			x.done(x.request, 2, DTOSend, DTOSuccess, size)
			same(t, joined(y, to)[:size], joined(x, from))

			y.memoryBarrier()
			ok(t, x.PostRDMAWrite(from, 3, y.lmr.Remote(1, size+7), 0)) // the range may be longer
			x.done(x.request, 3, DTORDMAWrite, DTOSuccess, size)
			same(t, y.mem[1:1+size], joined(x, from))

			ok(t, y.PostRDMARead(to, 4, x.lmr.Remote(9, size), 0)) // and so may the segments
			y.done(y.request, 4, DTORDMARead, DTOSuccess, size)
			same(t, joined(y, to)[:size], x.mem[9:9+size])
		}
	})
}

// TestOrder: completions of all kinds of requests arrive in posting order. Messages arrive in the order in which they
// were sent. Suppressed requests have no completions.
func TestOrder(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		const count = 5000
		a, b := newHosts(t, n, Options{})
		x, y := a.pointWith(nil, pointMem, 4*count), b.pointWith(nil, pointMem, 4*count)
		join(x, y)
		sizes := []int{0, 8, 64, 300, 1500, 4000}
		var posted, taken, sent, recvPosted, got uint64
		var ev Event
		for got < sent || taken < count {
			for recvPosted < got+200 {
				ok(t, y.PostRecv(y.seg(0, 4096), recvPosted, 0))
				recvPosted++
			}
			for posted < count {
				size := sizes[posted%6]
				var flags CompletionFlags
				if posted%7 == 3 {
					flags = CompletionSuppress
				}
				if posted%11 == 5 {
					flags |= CompletionBarrierFence
				}
				var err error
				switch posted % 5 {
				case 0:
					err = x.PostRDMAWrite(x.seg(0, size), posted, y.lmr.Remote(8192, size), flags)
				case 1:
					err = x.PostRDMARead(x.seg(32768, size), posted, y.lmr.Remote(16384, size), flags)
				default:
					err = x.PostSend(x.seg(0, size), posted, flags)
				}
				if errors.Is(err, ErrInsufficientResources) {
					break
				}
				ok(t, err)
				if posted%5 > 1 {
					sent++
				}
				posted++
			}
			if x.request.Dequeue(&ev) == nil {
				for taken%7 == 3 { // suppressed
					taken++
				}
				if ev.Cookie != taken || ev.Status != DTOSuccess || ev.Length != uint64(sizes[taken%6]) {
					t.Fatalf("completion %d: got %d %v, %d bytes", taken, ev.Cookie, ev.Status, ev.Length)
				}
				taken++
			}
			if y.recv.Dequeue(&ev) == nil {
				if ev.Cookie != got || ev.Status != DTOSuccess {
					t.Fatalf("receive %d: got %d %v", got, ev.Cookie, ev.Status)
				}
				got++
			}
		}
		x.still()
	})
}

// TestWritesThenSendOrRead: when a message is taken, the data of earlier writes is in memory. A read returns the data
// of earlier writes. A request with CompletionBarrierFence waits for earlier reads.
func TestWritesThenSendOrRead(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		for i := range uint64(200) {
			fillRandom(x.mem[:8192], i)
			y.memoryBarrier()
			ok(t, y.PostRecv(y.seg(60000, 8), i, 0))
			ok(t, x.PostRDMAWrite(x.seg(0, 8192), i, y.lmr.Remote(0, 8192), CompletionSuppress))
			ok(t, x.PostRDMAWrite(x.seg(4096, 4096), i, y.lmr.Remote(0, 4096), CompletionSuppress)) // the later write stays
			ok(t, x.PostRDMARead(x.seg(16384, 8192), i, y.lmr.Remote(0, 8192), CompletionSuppress))
			ok(t, x.PostSend(x.seg(16384, 8), i, CompletionBarrierFence)) // the data of the read
			y.done(y.recv, i, DTOReceive, DTOSuccess, 8)
			same(t, y.mem[4096:8192], x.mem[4096:8192])
			same(t, y.mem[:4096], x.mem[4096:8192])
			same(t, y.mem[60000:60008], y.mem[:8])
			x.done(x.request, i, DTOSend, DTOSuccess, 8)
			same(t, x.mem[16384:16384+8192], y.mem[:8192])
			y.memoryBarrier()
		}
	})
}

// The last aligned word of a write is stored last, with one store, so that the peer can poll it.
func TestPollingOnTheLastWord(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		const size = 4096
		last := (*uint64)(unsafe.Pointer(&y.mem[size-8]))
		for i := uint64(1); i <= 100; i++ {
			for at := 0; at < size; at += 8 {
				binary.NativeEndian.PutUint64(x.mem[at:], i)
			}
			y.memoryBarrier()
			ok(t, x.PostRDMAWrite(x.seg(0, size), i, y.lmr.Remote(0, size), 0))
			for end := time.Now().Add(patience); atomic.LoadUint64(last) != i; runtime.Gosched() {
				if time.Now().After(end) {
					t.Fatal("the write does not arrive")
				}
			}
			for at := 0; at < size-8; at += 8 {
				if got := binary.NativeEndian.Uint64(y.mem[at:]); got != i {
					t.Fatalf("byte %d has %d when the last word has %d", at, got, i)
				}
			}
			x.done(x.request, i, DTORDMAWrite, DTOSuccess, size)
		}
	})
}

// A large transfer of each kind is complete. With DATXDP_BIG=1 it has 1 GiB.
func TestTransferWhole(t *testing.T) {
	size := 64 << 20
	switch {
	case os.Getenv("DATXDP_BIG") != "":
		size = 1 << 30
	case raceEnabled:
		size = 16 << 20
	}
	src, dst := make([]byte, size), make([]byte, size)
	fillRandom(src, 3)
	want := sha256.Sum256(src)
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		x.lmr = must(a.ia.CreateLMR(src, a.pz, MemAll))(t)
		y.lmr = must(b.ia.CreateLMR(dst, b.pz, MemAll))(t)
		join(x, y)
		for _, op := range []DTO{DTOSend, DTORDMAWrite, DTORDMARead} {
			clear(dst)
			start := time.Now()
			moveAll(t, op, x, y, size)
			d := time.Since(start)
			if got := sha256.Sum256(dst); got != want {
				t.Errorf("%s: SHA-256 %x, want %x", opNames[op], got, want)
			}
			t.Logf("%s: %d MiB in %v, %.2f Gb/s", opNames[op], size>>20, d.Round(time.Millisecond), float64(size)*8/float64(d))
		}
	})
}

var opNames = map[DTO]string{DTOSend: "send", DTORDMAWrite: "write", DTORDMARead: "read"}

// moveAll copies x's memory to y's memory in operations of a megabyte, several at the same time.
func moveAll(t *testing.T, op DTO, x, y *point, size int) {
	t.Helper()
	const piece, depth = 1 << 20, 8
	by, iov := x, x.lmr
	if op == DTORDMARead {
		by, iov = y, y.lmr
	}
	for posted, taken := 0, 0; taken < size; {
		for ; posted < size && posted < taken+depth*piece; posted += piece {
			seg, cookie := []LMRTriplet{iov.Segment(posted, piece)}, uint64(posted)
			switch op {
			case DTOSend:
				ok(t, y.PostRecv([]LMRTriplet{y.lmr.Segment(posted, piece)}, cookie, 0))
				ok(t, by.PostSend(seg, cookie, 0))
			case DTORDMAWrite:
				ok(t, by.PostRDMAWrite(seg, cookie, y.lmr.Remote(posted, piece), 0))
			default:
				ok(t, by.PostRDMARead(seg, cookie, x.lmr.Remote(posted, piece), 0))
			}
		}
		if op == DTOSend {
			y.done(y.recv, uint64(taken), DTOReceive, DTOSuccess, piece)
		}
		by.done(by.request, uint64(taken), op, DTOSuccess, piece)
		taken += piece
	}
}
