package simlink

import (
	"sync"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

func TestWakeBeforeWaitIsNotLost(t *testing.T) {
	p := newPair(t, Config{Immediate: true})
	p.a.Wake()
	p.a.Wait(-1)
	start := time.Now()
	p.a.Wait(time.Millisecond)
	if took := time.Since(start); took < time.Millisecond {
		t.Errorf("Wait returned after %v, want a full millisecond", took)
	}
}

func TestWaitIsReleased(t *testing.T) {
	for name, release := range map[string]func(p *pair){
		"packet": func(p *pair) { p.send([]byte("x")) },
		"wake":   func(p *pair) { p.b.Wake() },
		"close":  func(p *pair) { _ = p.b.Close() },
	} {
		p := newPair(t, Config{Immediate: true})
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { p.b.Wait(-1) })
		}
		for sleeping := 0; sleeping < 3; {
			p.b.rx.mu.Lock()
			sleeping = len(p.b.rx.gate.sleepers)
			p.b.rx.mu.Unlock()
		}
		release(p)
		all.Wait()
		if got := p.b.Stats().Wakeups; got != 3 {
			t.Errorf("%s: %d wakeups, want 3", name, got)
		}
	}
}

// TestPingPong drives both ends from their own goroutines, sleeping in Wait.
func TestPingPong(t *testing.T) {
	const rounds = 20000
	p := newPair(t, Config{Immediate: true})
	var done sync.WaitGroup
	done.Go(func() { // b sends back every packet in its frame
		bufs := make([]link.Buf, 4)
		for echoed := 0; echoed < rounds; {
			n := p.b.Recv(bufs)
			if n == 0 {
				p.b.Wait(-1)
				continue
			}
			for i := range bufs[:n] {
				bufs[i].Path = link.PathReply
			}
			p.b.Send(bufs[:n])
			echoed += n
		}
	})
	bufs := make([]link.Buf, 4)
	for range rounds {
		p.send([]byte("ping"))
		for p.a.Recv(bufs) == 0 {
			p.a.Wait(-1)
		}
		p.a.Free(bufs[:1])
	}
	done.Wait()
	if p.a.Outstanding() != 0 || p.b.Outstanding() != 0 {
		t.Errorf("outstanding: a %d, b %d, want 0", p.a.Outstanding(), p.b.Outstanding())
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for _, cfg := range []Config{
		{Immediate: true},
		{Immediate: true, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.1},
		{Rate: 1e9, Delay: 1000},
	} {
		p := newPair(t, cfg)
		bufs := make([]link.Buf, 32)
		if got := testing.AllocsPerRun(1000, func() { cycle(p, bufs, 64); p.a.Wait(0) }); got != 0 {
			t.Errorf("%+v: %v allocations per batch, want 0", cfg, got)
		}
	}
}

// cycle sends a batch of packets from a to b and frees them there.
func cycle(p *pair, bufs []link.Buf, size int) int {
	n := p.a.Alloc(bufs)
	for i := range bufs[:n] {
		bufs[i].Path, bufs[i].Data = p.ab, bufs[i].Data[:size]
	}
	p.a.Send(bufs[:n])
	if !p.net.cfg.Immediate {
		p.net.Advance(p.net.Now() + 1_000_000)
	}
	n = p.b.Recv(bufs)
	p.b.Free(bufs[:n])
	return n
}

func BenchmarkImmediate(b *testing.B) {
	for _, bb := range []struct {
		name        string
		size, batch int
		unchecked   bool
	}{
		{"64B", 64, 32, true}, {"64B one by one", 64, 1, true}, {"1400B", 1400, 32, true},
		{"64B checked", 64, 32, false}, {"1400B checked", 1400, 32, false},
	} {
		b.Run(bb.name, func(b *testing.B) {
			p := newPair(b, Config{Immediate: true, Unchecked: bb.unchecked})
			bufs := make([]link.Buf, bb.batch)
			b.ReportAllocs()
			packets := 0
			for b.Loop() {
				packets += cycle(p, bufs, bb.size)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
		})
	}
}

func BenchmarkVirtual(b *testing.B) {
	p := newPair(b, Config{Delay: 1000, Unchecked: true})
	bufs := make([]link.Buf, 32)
	b.ReportAllocs()
	packets := 0
	for b.Loop() {
		packets += cycle(p, bufs, 1400)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
}
