package dat

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

func init() { roles["hog"] = hog }

// hog uses as much processor time as it gets, until its standard input ends.
func hog() error {
	var over atomic.Bool
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // returns at the end of the benchmark
		over.Store(true)
	}()
	for !over.Load() {
	}
	return nil
}

// hogs starts n processes that never sleep.
func hogs(b *testing.B, n int) {
	for range n {
		c := exec.Command("/proc/self/exe")
		c.Env = append(os.Environ(), roleVar+"=hog")
		in, err := c.StdinPipe()
		ok(b, err)
		ok(b, c.Start())
		b.Cleanup(func() {
			_ = in.Close()
			_ = c.Wait()
		})
	}
}

// BenchmarkStreamSend64 measures 64-byte messages over AF_XDP. A goroutine at each side polls for completions. The
// benchmark runs alone, and beside as many busy processes as there are processors.
func BenchmarkStreamSend64(b *testing.B) {
	b.Run("alone", func(b *testing.B) { newStream(b).send(b) })
	b.Run("beside hogs", func(b *testing.B) {
		s := newStream(b)
		hogs(b, runtime.NumCPU())
		s.send(b)
	})
}

// stream has a connection whose receiving side polls in a goroutine of its own.
type stream struct {
	from, to *point
	msg      []LMRTriplet
}

const streamDepth = 512

func newStream(b *testing.B) stream {
	n := newXDP(b)
	x, y := newHost(b, n, 0, Options{}), newHost(b, n, 1, Options{})
	y.listen(testQual, 8)
	attr := DefaultEPAttr()
	attr.MaxRequestDTOs, attr.MaxRecvDTOs = 2*streamDepth, 4*streamDepth
	p, q := pair(x, y, &attr)
	room := q.seg(64, 64)
	for range 4 * streamDepth {
		ok(b, q.PostRecv(room, 1, 0))
	}
	b.Cleanup(serve(func(ev *Event) {
		if q.recv.Dequeue(ev) == nil {
			_ = q.PostRecv(room, 1, 0)
		}
	}))
	return stream{p, q, p.seg(0, 64)}
}

// serve calls step in a loop, in a new goroutine, until stop is called.
func serve(step func(*Event)) (stop func()) {
	over := make(chan struct{})
	var server sync.WaitGroup
	server.Go(func() {
		var ev Event
		for {
			for range 64 {
				step(&ev)
			}
			select {
			case <-over:
				return
			default:
			}
		}
	})
	return func() {
		close(over)
		server.Wait()
	}
}

// send keeps streamDepth messages outstanding.
func (s stream) send(b *testing.B) {
	var ev Event
	sent, done := 0, 0
	reap := func(limit int) {
		for sent-done > limit {
			if s.from.request.Dequeue(&ev) == nil {
				done++
			}
		}
	}
	b.ReportAllocs()
	start := time.Now()
	for b.Loop() {
		reap(streamDepth - 1)
		if err := s.from.PostSend(s.msg, 2, 0); err != nil {
			b.Fatal(err)
		}
		sent++
	}
	reap(0)
	b.ReportMetric(float64(done)/time.Since(start).Seconds()/1e6, "M/s")
}

// This benchmark measures RDMA writes of 1 MiB over AF_XDP, from ordinary memory and, without a copy, from memory of
// Alloc.
func BenchmarkWrite1M(b *testing.B) {
	for _, mtu := range []int{9000, 65000} {
		b.Run(fmt.Sprintf("MTU %d", mtu), func(b *testing.B) {
			n := xdpNet{labtest.New(b, lab.Options{MTU: mtu})}
			b.Run("copied", func(b *testing.B) { writeStream(b, n, false) })
			b.Run("in place", func(b *testing.B) { writeStream(b, n, true) })
		})
	}
}

func writeStream(b *testing.B, n network, inPlace bool) {
	const size, depth = 1 << 20, 8
	x, y := newHosts(b, n, Options{Memory: size})
	p, q := pair(x, y, nil)
	from, err := p.ia.Alloc(size)
	ok(b, err)
	if !inPlace {
		from = make([]byte, size)
	}
	src := must(p.ia.CreateLMR(from, p.pz, MemAll))(b)
	dst := must(q.ia.CreateLMR(make([]byte, size), q.pz, MemAll))(b)
	stop := serve(func(ev *Event) { _ = q.recv.Dequeue(ev) })
	defer stop()
	var ev Event
	posted, done := 0, 0
	reap := func(limit int) {
		for posted-done > limit {
			if p.request.Dequeue(&ev) == nil {
				done++
			}
		}
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		reap(depth - 1)
		ok(b, p.PostRDMAWrite([]LMRTriplet{src.Segment(0, size)}, 1, dst.Remote(0, size), 0))
		posted++
	}
	reap(0)
	s := must(x.ia.Stats())(b)
	b.ReportMetric(float64(s.InPlaceBytes)/float64(s.TxBytes), "in-place")
}
