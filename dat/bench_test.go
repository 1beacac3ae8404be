package dat

import (
	"testing"
	"time"
)

// The benchmarks in this file use a simulated network in memory. One goroutine drives both sides. So the benchmarks
// measure the time that the provider needs at both sides together, without a kernel and without a second core.

func BenchmarkPostRecv(b *testing.B) {
	h := newHost(b, newSim(b), 0, Options{})
	lmr := must(h.ia.CreateLMR(make([]byte, 64), h.pz, MemAll))(b)
	iov := []LMRTriplet{lmr.Segment(0, 64)}
	attr := DefaultEPAttr()
	attr.MaxRecvDTOs = maxDTOs
	evd := must(h.ia.CreateEVD(1, nil, EVDDTO))(b)
	ep := must(h.ia.CreateEP(h.pz, EPConfig{RecvEVD: evd, RequestEVD: evd, Attr: &attr}))(b)
	b.ReportAllocs()
	for b.Loop() {
		if ep.PostRecv(iov, 1, 0) != nil { // full: once in 16384
			b.StopTimer()
			ok(b, ep.Free())
			ep = must(h.ia.CreateEP(h.pz, EPConfig{RecvEVD: evd, RequestEVD: evd, Attr: &attr}))(b)
			b.StartTimer()
		}
	}
}

func BenchmarkDequeueEmpty(b *testing.B) {
	d := newDuet(b, 1024)
	var ev Event
	b.ReportAllocs()
	for b.Loop() {
		_ = d.x.request.Dequeue(&ev)
	}
}

// This benchmark measures the round trip of a 64-byte message.
func BenchmarkRoundTrip64(b *testing.B) {
	d := newDuet(b, 1024)
	x, y := d.x, d.y
	var ev Event
	take := func(e *EVD) {
		for e.Dequeue(&ev) != nil {
		}
	}
	xs, xr, ys, yr := x.seg(0, 64), x.seg(64, 64), y.seg(0, 64), y.seg(64, 64)
	b.ReportAllocs()
	for b.Loop() {
		_ = y.PostRecv(yr, 1, 0)
		_ = x.PostRecv(xr, 1, 0)
		_ = x.PostSend(xs, 2, CompletionSuppress)
		take(y.recv)
		_ = y.PostSend(ys, 2, CompletionSuppress)
		take(x.recv)
	}
}

// This benchmark measures 64-byte messages, of which many are outstanding, with completions on both sides.
func BenchmarkMessages64(b *testing.B) {
	d := newDuet(b, 1024)
	room, msg := d.y.seg(0, 64), d.x.seg(0, 64)
	const batch = 200
	b.ReportAllocs()
	start, n := time.Now(), 0
	for b.Loop() {
		for range batch {
			_ = d.y.PostRecv(room, 1, 0)
		}
		for range batch {
			_ = d.x.PostSend(msg, 2, 0)
		}
		d.drain(b, batch, batch)
		n += batch
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(n), "ns/message")
}

// This benchmark measures operations of a megabyte, in packets of 1472 bytes.
func BenchmarkFrames(b *testing.B) {
	d := newDuet(b, 1024)
	const size = 1 << 20
	iov, room, remote := d.x.seg(0, size), d.y.seg(0, size), d.y.lmr.Remote(0, size)
	for _, op := range []DTO{DTOSend, DTORDMAWrite, DTORDMARead} {
		b.Run(opNames[op], func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			before := frames(b, d)
			for b.Loop() {
				receives := 0
				switch op {
				case DTOSend:
					_ = d.y.PostRecv(room, 1, 0)
					_ = d.x.PostSend(iov, 2, 0)
					receives = 1
				case DTORDMAWrite:
					_ = d.x.PostRDMAWrite(iov, 2, remote, 0)
				default:
					_ = d.x.PostRDMARead(iov, 2, remote, 0)
				}
				d.drain(b, 1, receives)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames(b, d)-before)/2, "ns/frame/side")
		})
	}
}

// frames returns the number of packets that both sides have sent.
func frames(b *testing.B, d duet) (n uint64) {
	for _, p := range []*point{d.x, d.y} {
		s, err := p.host.ia.Stats()
		ok(b, err)
		n += s.Link.TxPackets
	}
	return n
}
