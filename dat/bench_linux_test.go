package dat

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

// forgetful is a link that loses the next packet after it is told to.
type forgetful struct {
	link.Link
	lose atomic.Bool
}

func (f *forgetful) Send(bufs []link.Buf) {
	if len(bufs) > 0 && f.lose.CompareAndSwap(true, false) {
		n := 1
		for bufs[n-1].Flags&link.More != 0 {
			n++
		}
		f.Link.Free(bufs[:n])
		bufs = bufs[n:]
	}
	f.Link.Send(bufs)
}

// This benchmark measures the time from the post to the completion of a 64-byte write over AF_XDP. The first
// transmission of its only frame is lost.
func BenchmarkLostTail(b *testing.B) {
	n := newXDP(b)
	var layer *forgetful
	x := newHost(b, n, 0, Options{Wrap: func(below link.Link) link.Link {
		layer = &forgetful{Link: below}
		return layer
	}})
	y := newHost(b, n, 1, Options{})
	y.listen(testQual, 8)
	p, q := pair(x, y, nil)
	iov, remote := p.seg(0, 64), q.lmr.Remote(0, 64)
	var ev Event
	write := func() {
		ok(b, p.PostRDMAWrite(iov, 1, remote, 0))
		for start := time.Now(); p.request.Dequeue(&ev) != nil; {
			if time.Since(start) > patience {
				b.Fatal("never completed")
			}
		}
	}
	stop := make(chan struct{})
	var peer sync.WaitGroup
	peer.Go(func() { // the peer polls, like a program that waits for a message
		var ev Event
		for {
			select {
			case <-stop:
				return
			default:
				_ = q.recv.Dequeue(&ev)
			}
		}
	})
	defer peer.Wait()
	defer close(stop)
	var took []time.Duration
	for b.Loop() {
		write() // all earlier packets are acknowledged, so the next frame has this message
		layer.lose.Store(true)
		start := time.Now()
		write()
		took = append(took, time.Since(start))
		if layer.lose.Load() {
			b.Fatal("nothing was lost")
		}
	}
	slices.Sort(took)
	for _, p := range []struct {
		name  string
		share float64
	}{{"p50-µs", 0.5}, {"p99-µs", 0.99}, {"p99.9-µs", 0.999}} {
		b.ReportMetric(float64(took[int(p.share*float64(len(took)-1))])/1e3, p.name)
	}
}

// BenchmarkConnect measures connections that are made and ended one after the other.
func BenchmarkConnect(b *testing.B) {
	for name, make := range map[string]func(testing.TB) network{"xdp": newXDP, "udp": newUDP} {
		b.Run(name, func(b *testing.B) {
			n := make(b)
			a, s := newHost(b, n, 0, Options{}), newHost(b, n, 1, Options{})
			s.listen(testQual, 8)
			x, y := a.point(nil), s.point(nil)
			for b.Loop() {
				x.dial(s, nil)
				ok(b, s.request(b).Accept(y.EP, nil))
				x.expect(EventEstablished)
				y.expect(EventEstablished)
				ok(b, x.Disconnect(CloseAbrupt))
				for _, p := range []*point{x, y} {
					p.expect(EventDisconnected)
					ok(b, p.Reset())
				}
			}
		})
	}
}
