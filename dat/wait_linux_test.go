package dat

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkFirstFrame measures the time from the post of an RDMA write over AF_XDP until the write is placed and
// acknowledged. The goroutine that posts the write also polls for its completion. At the target no caller polls, and
// the background owner sleeps.
func BenchmarkFirstFrame(b *testing.B) {
	x, y := newHosts(b, newXDP(b), Options{})
	p, q := pair(x, y, nil)
	var took []time.Duration
	var ev Event
	for b.Loop() {
		asleep(b, y)
		time.Sleep(2 * time.Millisecond) // the background owner is in Link.Wait now
		start := time.Now()
		ok(b, p.PostRDMAWrite(p.seg(0, 64), 1, q.lmr.Remote(0, 64), 0))
		for p.request.Dequeue(&ev) != nil {
			if time.Since(start) > patience {
				b.Fatal("no completion")
			}
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(us(took[len(took)/2]), "median-µs")
	b.ReportMetric(us(took[len(took)*9/10]), "90%-µs")
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// BenchmarkWaiters measures 64-byte round trips over AF_XDP, in round trips per second of all connections together. In
// one variant the ends of the connections call Dequeue in a loop; in all other variants they call Wait. With 32
// connections, more goroutines wait than there are cores.
func BenchmarkWaiters(b *testing.B) {
	x, y := newHosts(b, newXDP(b), Options{})
	var points [][2]*point
	for range 32 {
		p, q := pair(x, y, nil)
		points = append(points, [2]*point{p, q})
	}
	poll := func(e *EVD, ev *Event) bool { return e.Dequeue(ev) == nil }
	wait := func(e *EVD, ev *Event) bool {
		_, err := e.Wait(time.Millisecond, 1, ev)
		return err == nil
	}
	for range 3 { // rounds, because the host may be slow for some time
		b.Run("poll/1", func(b *testing.B) { pingPong(b, points[:1], poll) })
		for _, n := range []int{1, 2, 4, 8, 32} {
			b.Run(fmt.Sprintf("wait/%d", n), func(b *testing.B) { pingPong(b, points[:n], wait) })
		}
	}
}

// pingPong makes every pair exchange messages, b.N in total.
func pingPong(b *testing.B, points [][2]*point, next func(*EVD, *Event) bool) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var over atomic.Bool
	var ends, servers sync.WaitGroup
	step := func(p *point, send bool) bool {
		var ev Event
		if send {
			ok(b, p.PostSend(p.seg(0, 64), 1, CompletionSuppress))
		}
		for !next(p.recv, &ev) {
			if over.Load() {
				return false
			}
		}
		ok(b, p.PostRecv(p.seg(64, 64), 2, 0))
		return true
	}
	start := time.Now()
	for _, pair := range points {
		for _, p := range pair {
			if recv, _ := p.conn.Receiving(); recv == 0 {
				ok(b, p.PostRecv(p.seg(64, 64), 2, 0))
				ok(b, p.PostRecv(p.seg(64, 64), 2, 0))
			}
		}
		servers.Go(func() {
			for step(pair[1], false) {
				ok(b, pair[1].PostSend(pair[1].seg(0, 64), 1, CompletionSuppress))
			}
		})
		ends.Go(func() {
			for left.Add(-1) >= 0 {
				step(pair[0], true)
			}
		})
	}
	ends.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds()/1e3, "k/s")
	over.Store(true)
	servers.Wait()
}

// TestFirstFrameAfterIdle: an RDMA write to a side that sleeps completes within 50 ms of its post, in the median.
func TestFirstFrameAfterIdle(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		var took []time.Duration
		for i := range uint64(50) {
			asleep(t, a)
			asleep(t, b)
			time.Sleep(2 * time.Millisecond) // the background owner is in Link.Wait now
			start := time.Now()
			ok(t, x.PostRDMAWrite(x.seg(0, 64), i, y.lmr.Remote(0, 64), 0))
			x.done(x.request, i, DTORDMAWrite, DTOSuccess, 64)
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		median := took[len(took)/2]
		t.Logf("served and confirmed after: median %v, 90 %% %v, most %v", median, took[45], took[49])
		if median > 50*time.Millisecond {
			t.Errorf("median %v, want less than 50 ms", median)
		}
	})
}
