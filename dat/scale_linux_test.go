package dat

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fleet has many connections between two hosts over AF_XDP. All events of a host go to one dispatcher.
type fleet struct {
	b          *testing.B
	hosts      [2]*host
	events     [2]*EVD
	eps        [2][]*EP
	mem        [2]*point
	depth      int // of each work queue
	receivable int // number of connections whose receives are posted
}

func newFleet(b *testing.B, depth int) *fleet { return newFleetOn(b, newXDP(b), depth) }

func newFleetOn(b *testing.B, n network, depth int) *fleet {
	f := &fleet{b: b, depth: depth}
	for side := range f.hosts {
		h := newHost(b, n, side, Options{})
		f.hosts[side], f.mem[side] = h, h.point(nil)
		f.events[side] = must(h.ia.CreateEVD(1<<16, nil, EVDDTO|EVDConnection))(b)
	}
	f.hosts[1].listen(testQual, 512)
	return f
}

// end closes both adapters, for the next fleet.
func (f *fleet) end() {
	for _, h := range f.hosts {
		ok(f.b, h.ia.Close())
	}
}

func (f *fleet) endpoint(side int) *EP {
	attr := DefaultEPAttr()
	attr.MaxRecvDTOs, attr.MaxRequestDTOs, attr.MaxRecvIOV, attr.MaxRequestIOV = f.depth, f.depth, 1, 1
	attr.MaxRDMAReadIn, attr.MaxRDMAReadOut, attr.MaxRDMAReadIOV, attr.MaxRDMAWriteIOV = 1, 1, 1, 1
	h, evd := f.hosts[side], f.events[side]
	ep := must(h.ia.CreateEP(h.pz, EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd, Attr: &attr}))(f.b)
	f.eps[side] = append(f.eps[side], ep)
	return ep
}

// grow establishes connections, several at the same time, until there are size connections.
func (f *fleet) grow(size int) {
	const window = 256
	established := [2]int{len(f.eps[0]), len(f.eps[0])}
	var ev Event
	for end := time.Now().Add(time.Minute); min(established[0], established[1]) < size; {
		for asked := len(f.eps[0]); asked < size && asked-established[0] < window; asked++ {
			ok(f.b, f.endpoint(0).Connect(f.hosts[1].addr, testQual, time.Minute, nil))
		}
		for f.hosts[1].cr.Dequeue(&ev) == nil {
			ok(f.b, ev.CR.Accept(f.endpoint(1), nil))
		}
		for side, evd := range f.events {
			for evd.Dequeue(&ev) == nil {
				if ev.Number != EventEstablished {
					f.b.Fatalf("side %d: %v after %d", side, ev.Number, established)
				}
				established[side]++
			}
		}
		if time.Now().After(end) {
			f.b.Fatalf("%d connections of %d after a minute", established, size)
		}
	}
}

// receive posts all receives of the first connections.
func (f *fleet) receive(active int, room []LMRTriplet) {
	for ; f.receivable < active; f.receivable++ {
		for range f.depth {
			ok(f.b, f.eps[1][f.receivable].PostRecv(room, uint64(f.receivable), 0))
		}
	}
}

// measureSends sends 64-byte messages over the first numConns connections of the fleet, for the time d. It returns the
// number of completed messages per second.
func (f *fleet) measureSends(numConns int, d time.Duration) float64 {
	d = benchTime(d)
	msg, room := f.mem[0].seg(0, 64), f.mem[1].seg(0, 64)
	f.receive(numConns, room)
	var received atomic.Int64
	stop := serve(func(ev *Event) {
		if f.events[1].Dequeue(ev) == nil {
			_ = f.eps[1][ev.Cookie].PostRecv(room, ev.Cookie, 0)
			received.Add(1)
		}
	})
	defer stop()
	sent, done := 0, 0
	post := func(i uint64) {
		ok(f.b, f.eps[0][i].PostSend(msg, i, 0))
		sent++
	}
	for range f.depth {
		for i := range numConns {
			post(uint64(i))
		}
	}
	var ev Event
	reap := func() bool {
		if f.events[0].Dequeue(&ev) != nil {
			return false
		}
		if ev.Status != DTOSuccess {
			f.b.Fatal(ev.Status)
		}
		done++
		return true
	}
	start := time.Now()
	for time.Since(start) < d {
		for range 64 {
			if reap() {
				post(ev.Cookie)
			}
		}
	}
	rate := float64(done) / time.Since(start).Seconds()
	for done < sent || received.Load() < int64(sent) {
		reap()
	}
	return rate
}

// benchTime returns the time for which a benchmark measures: d or, with -short, a part of d. With -short the benchmark
// only has to run, and its figures are not used.
func benchTime(d time.Duration) time.Duration {
	if testing.Short() {
		return d / 20
	}
	return d
}

// heap returns the size of the live heap in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkConnections measures the rate at which connections are established, and two costs at each side: the memory
// of an idle connection, and the fraction of a core that all idle connections together use.
func BenchmarkConnections(b *testing.B) {
	for _, size := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				f := newFleet(b, 4)
				before, start := heap(), time.Now()
				f.grow(size)
				b.ReportMetric(float64(size)/time.Since(start).Seconds(), "connections/s")
				b.ReportMetric(float64(heap()-before)/float64(2*size), "B/end")
				time.Sleep(100 * time.Millisecond) // let the work of connecting end
				cpu, start := cpuTime(), time.Now()
				time.Sleep(benchTime(time.Second))
				b.ReportMetric(100*float64(cpuTime()-cpu)/float64(time.Since(start)), "%core")
				f.end()
			}
		})
	}
}

// This benchmark measures a hundred busy connections, alone and beside 9900 idle connections.
func BenchmarkActive(b *testing.B) {
	for b.Loop() {
		f := newFleet(b, 16)
		f.grow(100)
		f.measureSends(100, 100*time.Millisecond) // let the congestion windows grow
		few := f.measureSends(100, 500*time.Millisecond)
		f.grow(10000)
		many := f.measureSends(100, 500*time.Millisecond)
		b.ReportMetric(few/1e6, "M/s-of-100")
		b.ReportMetric(many/1e6, "M/s-of-10000")
		b.ReportMetric(many/few, "ratio")
		f.end()
	}
}

// This benchmark measures messages over 64 connections.
func BenchmarkSpread64(b *testing.B) {
	for b.Loop() {
		f := newFleet(b, 64)
		f.grow(64)
		f.measureSends(64, 100*time.Millisecond)
		b.ReportMetric(f.measureSends(64, 500*time.Millisecond)/1e6, "M/s")
		f.end()
	}
}

// This benchmark measures round trips over 64 connections with one outstanding message each, so no two messages share a
// packet.
func BenchmarkEcho64(b *testing.B) {
	for b.Loop() {
		f := newFleet(b, 4)
		f.grow(64)
		f.echo(100 * time.Millisecond)
		b.ReportMetric(f.echo(500*time.Millisecond)/1e6, "M/s")
		f.end()
	}
}

// echo sends 64-byte messages back and forth on every connection. It returns the number of round trips per second.
func (f *fleet) echo(d time.Duration) float64 {
	d = benchTime(d)
	msg, room := [2][]LMRTriplet{f.mem[0].seg(0, 64), f.mem[1].seg(0, 64)}, [2][]LMRTriplet{f.mem[0].seg(64, 64), f.mem[1].seg(64, 64)}
	var over atomic.Bool
	// answer posts the next message of a connection, for one that has come.
	answer := func(side int, ev *Event) bool {
		if f.events[side].Dequeue(ev) != nil {
			return false
		}
		ep := f.eps[side][ev.Cookie]
		ok(f.b, ep.PostRecv(room[side], ev.Cookie, 0))
		if side == 1 || !over.Load() {
			ok(f.b, ep.PostSend(msg[side], ev.Cookie, CompletionSuppress))
		}
		return true
	}
	for side := range f.hosts {
		for i := range f.eps[side] {
			ok(f.b, f.eps[side][i].PostRecv(room[side], uint64(i), 0))
		}
	}
	stop := serve(func(ev *Event) { answer(1, ev) })
	defer stop()
	for i := range f.eps[0] {
		ok(f.b, f.eps[0][i].PostSend(msg[0], uint64(i), CompletionSuppress))
	}
	var ev Event
	done := 0
	start := time.Now()
	for time.Since(start) < d {
		for range 64 {
			if answer(0, &ev) {
				done++
			}
		}
	}
	rate := float64(done) / time.Since(start).Seconds()
	over.Store(true)
	for left := len(f.eps[0]); left > 0; {
		if answer(0, &ev) {
			left--
		}
	}
	return rate
}

// cpuTime returns the processor time of the process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
