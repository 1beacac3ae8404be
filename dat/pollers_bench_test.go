package dat

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/wire"
)

// BenchmarkPollers measures the time from a post until one of several goroutines of the peer, which poll one adapter, has
// the message. Each goroutine polls its own dispatcher. They yield after an empty poll or not, or have threads of their own.
// With bulk, another goroutine of the peer writes a megabyte at a time to this side.
func BenchmarkPollers(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, n := range []int{1, 2, 4} {
		for _, kind := range []string{"goroutines", "yielding", "threads", "yielding, bulk"} {
			b.Run(fmt.Sprintf("%d %s", n, kind), func(b *testing.B) { benchmarkPollers(b, n, kind) })
		}
	}
}

func benchmarkPollers(b *testing.B, n int, kind string) {
	x, y := newHosts(b, newUDP(b), Options{})
	p := pollers{}
	p.kind, p.bulk, _ = strings.Cut(kind, ", ")
	var senders []*point
	for range n {
		from, to := pair(x, y, nil)
		senders = append(senders, from)
		p.all.Go(func() { p.receive(b, to) })
	}
	if p.bulk != "" {
		const size = 1 << 20
		x.listen(testQual, 8)
		to, from := x.pointWith(nil, size, 8), y.pointWith(nil, size, 8)
		join(from, to)
		p.all.Go(func() { p.write(b, from, to.lmr.Remote(0, size)) })
	}
	var ev Event
	sent := int32(0)
	for b.Loop() {
		for end := progress.Now().Add(rand.N(100 * time.Microsecond)); progress.Now() < end; {
			runtime.Gosched()
		}
		from := senders[rand.N(n)]
		for from.request.Dequeue(&ev) == nil {
		}
		binary.NativeEndian.PutUint64(from.mem, uint64(progress.Now()))
		if err := from.PostSend(from.seg(0, 64), 1, 0); err != nil {
			b.Fatal(err)
		}
		for sent++; p.received.Load() < sent; {
			_ = from.request.Dequeue(&ev)
			runtime.Gosched()
		}
	}
	p.over.Store(true)
	p.all.Wait()
	slices.Sort(p.took)
	for _, percent := range []int{50, 90, 99} {
		b.ReportMetric(float64(p.took[len(p.took)*percent/100].Nanoseconds())/1e3, fmt.Sprintf("p%d-µs", percent))
	}
	b.ReportMetric(float64(p.took[len(p.took)-1].Nanoseconds())/1e3, "max-µs")
}

// pollers are goroutines that poll one adapter.
type pollers struct {
	kind     string
	bulk     string
	all      sync.WaitGroup
	received atomic.Int32
	over     atomic.Bool
	mu       sync.Mutex
	took     []time.Duration
}

// receive takes messages until the benchmark is over.
func (p *pollers) receive(b *testing.B, to *point) {
	if p.kind == "threads" {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	post := func() {
		if err := to.PostRecv(to.seg(64, 64), 1, 0); err != nil {
			b.Error(err)
		}
	}
	for range 4 {
		post()
	}
	for ev := (Event{}); !p.over.Load(); {
		if to.recv.Dequeue(&ev) == nil {
			now := progress.Now()
			took := now.Sub(wire.Time(binary.NativeEndian.Uint64(to.mem[64:])))
			p.mu.Lock()
			p.took = append(p.took, took)
			p.mu.Unlock()
			p.received.Add(1)
			post()
		} else if p.kind == "yielding" {
			runtime.Gosched()
		}
	}
}

// write writes the memory of a point to the peer until the benchmark is over, two writes at a time.
func (p *pollers) write(b *testing.B, from *point, remote RMRTriplet) {
	outstanding := 0
	for ev := (Event{}); outstanding > 0 || !p.over.Load(); {
		for ; outstanding < 2 && !p.over.Load(); outstanding++ {
			if err := from.PostRDMAWrite(from.seg(0, len(from.mem)), 1, remote, 0); err != nil {
				b.Error(err)
				return
			}
		}
		if from.request.Dequeue(&ev) == nil {
			outstanding--
		} else {
			runtime.Gosched()
		}
	}
}
