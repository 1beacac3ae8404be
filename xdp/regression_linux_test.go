package xdp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/link"
)

// A burst that is larger than one sendto can transmit is transmitted completely.
func TestBurstDrains(t *testing.T) {
	p := newPair(t, pairOptions{})
	a, b := p.ends[lab.A], p.ends[lab.B]
	to := p.path(t, lab.A)
	const burst = 200
	var bufs []link.Buf
	for i := range uint32(burst) {
		bufs = append(bufs, message(t, a, to, 64, i)...)
	}
	a.Send(bufs)
	for i, m := range collect(t, b, burst) {
		if got := binary.BigEndian.Uint32(m); got != uint32(i) {
			t.Fatalf("packet %d is number %d", i, got)
		}
	}
	settled(t, a)
	if a.pool.count[isFree]+a.pool.count[isFill] != uint32(len(a.pool.notes)) {
		t.Errorf("frames %v", a.pool.count)
	}
}

// The kernel transmits only a part of the queued packets. After that, Alloc must hand out only as many frames as Send
// has room for.
func TestAllocAfterPartialDrain(t *testing.T) {
	p := newPair(t, pairOptions{edit: func(o *Options) { o.TxRing, o.CompletionRing = 64, 64 }})
	a := p.ends[lab.A]
	to := p.path(t, lab.A)
	bufs := make([]link.Buf, 256)
	for round := range 500 {
		n := a.Alloc(bufs)
		for i := range bufs[:n] {
			bufs[i].Data, bufs[i].Path = bufs[i].Data[:64], to
		}
		a.Send(bufs[:n])
		conserve(t, a)
		if s := a.Stats(); s.TxPackets+s.TxDropped-a.counters.kernelDropped.Load() < uint64(round) || a.counters.txDropped.Load() > 0 {
			t.Fatalf("round %d: %+v, frames %v", round, s, a.pool.count)
		}
	}
	settled(t, a)
	if n := a.Alloc(bufs); n != 64 {
		t.Errorf("%d frames, want 64: %v", n, a.pool.count)
	}
}

// No random sequence of operations loses a frame or uses it twice.
func TestFramesAreConserved(t *testing.T) {
	for _, mtu := range []int{1500, 9000} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			conserveRandomly(t, rand.New(rand.NewPCG(seed, 1)), mtu)
		})
	}
}

func conserveRandomly(t *testing.T, r *rand.Rand, mtu int) {
	p := newPair(t, pairOptions{mtu: mtu, edit: func(o *Options) { o.Frames, o.TxRing, o.RxRing, o.FillRing = 512, 128, 256, 256 }})
	held := [2][]link.Buf{}
	paths := [2]link.Path{p.path(t, lab.A), p.path(t, lab.B)}
	own, err := p.ends[0].Resolve(p.ends[0].Local(), 1)
	if err != nil {
		t.Fatal(err)
	}
	bufs := make([]link.Buf, 64)
	for range 20000 {
		i := r.IntN(2)
		s := p.ends[i]
		switch r.IntN(6) {
		case 0, 1:
			n := s.Alloc(bufs[:1+r.IntN(40)])
			for j := range bufs[:n] {
				bufs[j].Data, bufs[j].Path = bufs[j].Data[:r.IntN(s.caps.MaxPayload)%len(bufs[j].Data)], paths[i]
				bufs[j].Flags = link.Flags(r.IntN(8) / 7)
				if i == 0 && r.IntN(8) == 0 {
					bufs[j].Path = own
				}
				if r.IntN(50) == 0 {
					bufs[j].Path = link.Path(r.Uint32())
				}
			}
			k := n - r.IntN(n+1)/8
			s.Send(bufs[:k])
			s.Free(bufs[k:n])
		case 2:
			n := s.Recv(bufs)
			held[i] = append(held[i], bufs[:n]...)
		case 3:
			s.Free(held[i])
			held[i] = held[i][:0]
		case 4:
			k := r.IntN(len(held[i]) + 1)
			s.Send(held[i][:k])
			held[i] = held[i][k:]
		case 5:
			s.Wait(0)
		}
		conserve(t, s)
		if t.Failed() {
			return
		}
	}
	for i, s := range p.ends {
		s.Free(held[i])
		settled(t, s)
	}
}

// Packets that are sent while an interface goes down and up again are lost and counted. Nothing panics, and packets
// flow afterwards.
func TestInterfaceDownAndUp(t *testing.T) {
	for _, side := range []lab.Side{lab.A, lab.B} {
		t.Run("side "+side.String(), func(t *testing.T) {
			p := newPair(t, pairOptions{})
			a, b := p.ends[lab.A], p.ends[lab.B]
			to := p.path(t, lab.A)
			up := make(chan error, 1)
			go func() {
				for range 3 {
					for _, state := range []bool{false, true} {
						if err := p.lab.SetUp(side, state); err != nil {
							up <- err
							return
						}
					}
				}
				up <- nil
			}()
			in := make([]link.Buf, 64)
			n := uint32(0)
			for done := false; !done; n++ {
				select {
				case err := <-up:
					if err != nil {
						t.Fatal(err)
					}
					done = true
				default:
				}
				out := make([]link.Buf, 4)
				k := a.Alloc(out)
				for i := range out[:k] {
					out[i].Data, out[i].Path = out[i].Data[:64], to
				}
				a.Send(out[:k])
				b.Free(in[:b.Recv(in)])
				conserve(t, a)
			}
			flowsAgain(t, a, b, to)
			t.Logf("%d rounds: %+v", n, a.Stats())
			settled(t, a)
			settled(t, b)
		})
	}
}

// flowsAgain sends until a packet with a special payload arrives.
func flowsAgain(t *testing.T, a, b *Socket, to link.Path) {
	t.Helper()
	const mark = 0xfeedface
	in := make([]link.Buf, 64)
	for deadline := time.Now().Add(patience); ; {
		a.Send(message(t, a, to, 64, mark))
		b.Wait(time.Millisecond)
		n := b.Recv(in)
		found := false
		for i := range in[:n] {
			found = found || len(in[i].Data) == 64 && binary.BigEndian.Uint32(in[i].Data) == mark
		}
		b.Free(in[:n])
		if found {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing arrives: %+v, stall %d; %+v", a.Stats(), a.stall.Load(), b.Stats())
		}
	}
}

// Packets that are sent while the interface is down are dropped and counted. Their frames return to the pool.
func TestSendWhileDown(t *testing.T) {
	p := newPair(t, pairOptions{})
	a := p.ends[lab.A]
	to := p.path(t, lab.A)
	if err := p.lab.SetUp(lab.A, false); err != nil {
		t.Fatal(err)
	}
	const packets = 5000 // more than there are frames
	for i := range uint32(packets) {
		a.Send(message(t, a, to, 64, i))
	}
	if s := a.Stats(); s.TxDropped < packets-1 {
		t.Errorf("%+v, want all but one of %d dropped", s, packets)
	}
	a.Wait(time.Millisecond)
	if err := p.lab.SetUp(lab.A, true); err != nil {
		t.Fatal(err)
	}
	flowsAgain(t, a, p.ends[lab.B], to)
	settled(t, a)
}

// Repeated opening and closing of a queue leaks no descriptor and no mapping.
func TestOpenCloseCycles(t *testing.T) {
	cycles := 200
	switch {
	case os.Getenv("DATXDP_SOAK") != "":
		cycles = 10000
	case testing.Short():
		cycles = 60
	}
	l := newLab(t, 1500, 1)
	onSide(t, l, lab.A, func() error {
		var fds int
		var memory uint64
		for i := range cycles {
			d, err := Open(lab.Interface, small())
			if err != nil {
				return fmt.Errorf("cycle %d: %w", i, err)
			}
			if rings, _ := mapped(t); i == 0 && rings == 0 {
				t.Error("no mapping of a ring is found while the queue is open: this test sees nothing")
			}
			if err := d.Close(); err != nil {
				return fmt.Errorf("cycle %d: %w", i, err)
			}
			if i == 9 {
				fds = descriptors(t)
				_, memory = mapped(t)
			}
		}
		if now := descriptors(t); now > fds {
			t.Errorf("%d descriptors after %d cycles, %d after 10", now, cycles, fds)
		}
		rings, now := mapped(t)
		if rings > 0 {
			t.Errorf("%d mappings of rings after %d cycles", rings, cycles)
		}
		// If the cycles leaked their frame memory, the process would grow by all of it. Up to a half is allowed,
		// because the runtime's own memory grows and shrinks too, and that of the race detector with it.
		if leak := uint64(cycles-10) * uint64(small().Frames*small().FrameSize) / 2; now > memory+leak {
			t.Errorf("%d MiB of memory after %d cycles, %d MiB after 10", now>>20, cycles, memory>>20)
		}
		return nil
	})
}

// Close releases every Wait and does not unmap memory under it.
func TestCloseWhileWaiting(t *testing.T) {
	p := newPair(t, pairOptions{})
	a := p.ends[lab.A]
	var waiters sync.WaitGroup
	for range 4 {
		waiters.Go(func() {
			for !a.closed.Load() {
				a.Wait(-1)
			}
		})
		waiters.Go(func() {
			for !a.closed.Load() {
				a.Wait(50 * time.Microsecond)
				a.Stats()
				a.Wake()
			}
		})
	}
	bufs := make([]link.Buf, 32)
	for a.counters.wakeups.Load() < 100 {
		a.Free(bufs[:a.Recv(bufs)]) // Wait would not sleep while packets wait to be received
		runtime.Gosched()
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	waiters.Wait()
	a.Wait(-1)
	a.Wake()
	a.Stats()
	if n := a.Recv(bufs) + a.Alloc(bufs); n != 0 {
		t.Errorf("%d frames from a closed socket", n)
	}
	a.Send(bufs[:1])
	a.Free(bufs[:1])
}

// A socket works for more packets than it has frames if it only sends, only receives, or only answers.
func TestOneWayUse(t *testing.T) {
	p := newPair(t, pairOptions{})
	a, b := p.ends[lab.A], p.ends[lab.B]
	to := p.path(t, lab.A)
	rounds := 3 * len(a.pool.notes) / 32
	for i := range rounds {
		var out []link.Buf
		for j := range uint32(32) {
			out = append(out, message(t, a, to, 64, uint32(i)*32+j)...)
		}
		a.Send(out)
		collect(t, b, 32)
	}
	settled(t, a)
	settled(t, b)
	in := make([]link.Buf, 32)
	for i := range uint32(2 * len(a.pool.notes)) {
		a.Send(message(t, a, to, 64, i))
		n := 0
		for deadline := time.Now().Add(patience); n == 0; {
			if n = b.Recv(in); n == 0 && time.Now().After(deadline) {
				t.Fatalf("packet %d: %+v %v", i, b.Stats(), b.pool.count)
			}
		}
		b.Send(in[:n])
		collect(t, a, 1)
	}
	if d := b.Stats().TxDropped; d != 0 {
		t.Errorf("%d answers dropped", d)
	}
	settled(t, b)
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// mapped counts the mappings of rings, which belong to sockets, and the bytes of anonymous writable memory.
func mapped(t *testing.T) (rings int, memory uint64) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var from, to uint64
		var mode, path string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if f := strings.Fields(line); len(f) > 5 {
			path = f[5]
		}
		switch {
		case strings.HasPrefix(path, "socket:"):
			rings++
		case path == "" && mode == "rw-p":
			memory += to - from
		}
	}
	return rings, memory
}

// small returns options for a device that is opened often.
func small() Options {
	o := DefaultOptions()
	o.Frames, o.TxRing, o.CompletionRing, o.RxRing, o.FillRing = 256, 64, 64, 128, 128
	return o
}
