package xdp

import (
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

// If the kernel's counters cannot be read, the last values are returned: a counter never decreases.
func TestKernelStatsStay(t *testing.T) {
	s := newFake(t, 1500).s
	s.kernel.Rx_ring_full = 5
	was := s.fd
	s.fd = 1 << 30 // not an open file
	defer func() { s.fd = was }()
	if got := s.KernelStats().RxRingFull; got != 5 || s.Stats().RxDropped != 5 {
		t.Errorf("rx ring full %d times after a read that failed, want 5", got)
	}
}

// The socket passes every packet once and in order while another goroutine plays the kernel. The frames are plain
// memory, so the race detector checks the accesses to them.
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
	wg.Go(func() { // sends every packet back
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
				src, dst := p[ethSize+v4Src:ethSize+v4Dst], p[ethSize+v4Dst:ethSize+v4Size]
				for i := range src {
					src[i], dst[i] = dst[i], src[i] // the checksum does not change
				}
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
