package stream

import (
	"bufio"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// The benchmarks in this file run a stream beside sends of package dat between the same two adapters. They take turns
// for besideRounds rounds, or one with -short. The metric "ratio" is the median of the ratios of the rounds.
const (
	besideRounds = 21
	besideTime   = 60 * time.Millisecond
)

// worker does operations until the deadline and returns how many.
type worker func(deadline time.Time) (n int)

// beside measures rates, or with inverse times, of operations of a size.
func beside(b *testing.B, unit string, size float64, inverse bool, stream, send worker) {
	var ratios, ours, theirs []float64
	rate := func(w worker) float64 {
		start := time.Now()
		n := w(start.Add(besideTime))
		return float64(n) * size / time.Since(start).Seconds()
	}
	rounds := besideRounds
	if testing.Short() {
		rounds = 1
	}
	for range b.N {
		for range rounds {
			x, y := rate(stream), rate(send)
			ours, theirs = append(ours, x), append(theirs, y)
			if inverse {
				x, y = y, x
			}
			ratios = append(ratios, x/y)
		}
	}
	median := func(all []float64) float64 {
		slices.Sort(all)
		return all[len(all)/2]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "ratio")
	if s, d := median(ours), median(theirs); inverse {
		b.ReportMetric(1e6/s, "stream-"+unit)
		b.ReportMetric(1e6/d, "dat-"+unit)
	} else {
		b.ReportMetric(s, "stream-"+unit)
		b.ReportMetric(d, "dat-"+unit)
	}
}

// sender is a connection of package dat whose messages all have the same size.
type sender struct {
	b       testing.TB
	ep      *dat.EP
	evd     *dat.EVD
	out, in []dat.LMRTriplet
}

// newSenders connects two endpoints, with receives posted.
func newSenders(b testing.TB, a, z *dat.IA, size, depth int) (x, y *sender) {
	b.Helper()
	make1 := func(ia *dat.IA) *sender {
		pz, err := ia.CreatePZ()
		check(b, err)
		evd, err := ia.CreateEVD(8*depth+16, nil, dat.EVDDTO|dat.EVDConnection|dat.EVDCR)
		check(b, err)
		attr := dat.EPAttr{MaxRecvDTOs: 2 * depth, MaxRequestDTOs: 2 * depth, MaxRecvIOV: 1, MaxRequestIOV: 1}
		ep, err := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd, Attr: &attr})
		check(b, err)
		mem, err := ia.CreateLMR(make([]byte, 2*size), pz, dat.MemLocalRead|dat.MemLocalWrite)
		check(b, err)
		s := &sender{b: b, ep: ep, evd: evd, out: []dat.LMRTriplet{mem.Segment(0, size)}, in: []dat.LMRTriplet{mem.Segment(size, size)}}
		for range 2 * depth {
			check(b, ep.PostRecv(s.in, 0, 0))
		}
		return s
	}
	x, y = make1(a), make1(z)
	psp, err := z.CreatePSP(7999, y.evd, dat.PSPConsumer)
	check(b, err)
	p, err := z.Query()
	check(b, err)
	check(b, x.ep.Connect(p.Address, 7999, 5*time.Second, nil))
	var ev dat.Event
	_, err = y.evd.Wait(-1, 1, &ev)
	check(b, err)
	check(b, ev.CR.Accept(y.ep, nil))
	for _, s := range []*sender{x, y} {
		if _, err = s.evd.Wait(-1, 1, &ev); err != nil || ev.Number != dat.EventEstablished {
			b.Fatal(ev.Number, err)
		}
	}
	check(b, psp.Free())
	return x, y
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pump sends messages to another sender until the deadline, depth at a time, and waits until all have arrived. Both
// sides poll. Nothing polls between two calls, so that the stream has the processors for itself.
func (s *sender) pump(to *sender, deadline time.Time, depth int) (n int) {
	var over atomic.Bool
	var peer sync.WaitGroup
	peer.Go(func() { to.serve(&over) })
	defer peer.Wait()
	defer over.Store(true)
	var ev dat.Event
	for done := 0; ; {
		if n-done < depth && time.Now().Before(deadline) {
			check(s.b, s.ep.PostSend(s.out, 1, 0))
			n++
		}
		if n == done {
			return n
		}
		if s.evd.Dequeue(&ev) == nil {
			done++
		}
	}
}

// serve posts each receive again until over is set.
func (s *sender) serve(over *atomic.Bool) {
	var ev dat.Event
	for !over.Load() {
		if s.evd.Dequeue(&ev) == nil && ev.Op == dat.DTOReceive && ev.Status == dat.DTOSuccess {
			_ = s.ep.PostRecv(s.in, 0, 0)
		}
	}
}

// await waits for a message and posts its receive again. It returns false at the end of the connection.
func (s *sender) await() bool {
	var ev dat.Event
	for {
		if _, err := s.evd.Wait(-1, 1, &ev); err != nil || ev.Number != dat.EventDTOCompletion {
			return false
		}
		if ev.Op == dat.DTOReceive {
			return ev.Status == dat.DTOSuccess && s.ep.PostRecv(s.in, 0, 0) == nil
		}
	}
}

// besideLinks runs f over each link and MTU that the targets name.
func besideLinks(b *testing.B, f func(b *testing.B, a, z *dat.IA)) {
	for _, l := range append([]linkType{{"udp", udp}}, mtuLinks...) {
		b.Run(l.name, func(b *testing.B) {
			a, z := l.make(b)
			f(b, a, z)
		})
	}
}

// A round trip of 64 bytes, with one goroutine a side.
func BenchmarkBesideRoundTrip(b *testing.B) {
	besideLinks(b, func(b *testing.B, a, z *dat.IA) {
		x, y := newPair(b, a, z)
		go func() {
			for p := make([]byte, 64); ; {
				if _, err := io.ReadFull(y, p); err != nil {
					return
				}
				if _, err := y.Write(p); err != nil {
					return
				}
			}
		}()
		p := make([]byte, 64)
		over := func(deadline time.Time) (n int) {
			for ; time.Now().Before(deadline); n++ {
				if _, err := x.Write(p); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(x, p); err != nil {
					b.Fatal(err)
				}
			}
			return n
		}
		s, d := newSenders(b, a, z, 64, 16)
		go func() {
			for d.await() {
				_ = d.ep.PostSend(d.out, 0, dat.CompletionSuppress)
			}
		}()
		defer func() { _ = s.ep.Disconnect(dat.CloseAbrupt) }()
		beside(b, "µs", 1, true, over, func(deadline time.Time) (n int) {
			for ; time.Now().Before(deadline); n++ {
				check(b, s.ep.PostSend(s.out, 0, dat.CompletionSuppress))
				s.await()
			}
			return n
		})
	})
}

// writes returns a worker that writes to w, which leads to x, and waits until y has read what was written.
func writes(b *testing.B, x, y *Conn, w io.Writer, size int) worker {
	var read atomic.Int64
	var failed atomic.Bool
	go func() {
		defer failed.Store(true)
		for p := make([]byte, 256<<10); ; {
			n, err := y.Read(p)
			if err != nil {
				return
			}
			read.Add(int64(n))
		}
	}()
	p := make([]byte, size)
	return func(deadline time.Time) (n int) {
		goal := read.Load()
		for time.Now().Before(deadline) {
			for range max(1, min(256, (64<<10)/size)) {
				if _, err := w.Write(p); err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		if f, ok := w.(*bufio.Writer); ok {
			check(b, f.Flush())
		}
		for goal += int64(n * size); read.Load() < goal && !failed.Load(); {
			runtime.Gosched()
		}
		return n
	}
}

// Writes of 1 MiB beside messages of 1 MiB.
func BenchmarkBeside1MiB(b *testing.B) {
	besideLinks(b, func(b *testing.B, a, z *dat.IA) {
		const size, depth = 1 << 20, 8
		x, y := newPair(b, a, z)
		s, d := newSenders(b, a, z, size, depth)
		defer func() { _ = s.ep.Disconnect(dat.CloseAbrupt) }()
		beside(b, "MB/s", float64(size)/1e6, false, writes(b, x, y, x, size), func(deadline time.Time) int { return s.pump(d, deadline, depth) })
	})
}

// Writes of 64 bytes beside writes of 1 MiB, directly and through a bufio.Writer.
func BenchmarkBeside64(b *testing.B) {
	for _, name := range []string{"direct", "bufio"} {
		b.Run(name, func(b *testing.B) {
			besideLinks(b, func(b *testing.B, a, z *dat.IA) {
				x, y := newPair(b, a, z)
				w := io.Writer(x)
				if name == "bufio" {
					w = bufio.NewWriter(x)
				}
				v, u := newPair(b, a, z)
				small, big := writes(b, x, y, w, 64), writes(b, v, u, v, 1<<20)
				beside(b, "MB/s", 64e-6, false, small, func(t time.Time) int { return big(t) << 20 / 64 })
			})
		})
	}
}
