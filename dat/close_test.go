package dat

import (
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A graceful close returns an error while an object exists, and changes nothing.
func TestCloseGraceful(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		ia := must(n.open(0, Options{}))(t)
		wants(t, "flags", ia.CloseWith(2), ErrInvalidParameter)
		pz := must(ia.CreatePZ())(t)
		evd := must(ia.CreateEVD(8, nil, EVDDTO|EVDConnection|EVDCR))(t)
		lmr := must(ia.CreateLMR(make([]byte, 8), pz, MemAll))(t)
		ep := must(ia.CreateEP(pz, EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd}))(t)
		psp := must(ia.CreatePSP(1, evd, PSPConsumer))(t)
		refused := func(left string) {
			t.Helper()
			wants(t, "close with "+left, ia.CloseWith(CloseGraceful), ErrInvalidState)
		}
		refused("everything")
		wants(t, "free of a dispatcher in use", evd.Free(), ErrInvalidState)
		wants(t, "free of a zone in use", pz.Free(), ErrInvalidState)
		ok(t, psp.Free())
		refused("an endpoint")
		ok(t, ep.Free())
		refused("a region")
		wants(t, "free of a zone in use", pz.Free(), ErrInvalidState)
		ok(t, lmr.Free())
		ok(t, pz.Free())
		refused("a dispatcher")
		ok(t, evd.Free())
		ok(t, ia.CloseWith(CloseGraceful))
		wants(t, "close again", ia.CloseWith(CloseGraceful), ErrInvalidHandle)
		wants(t, "abrupt close again", ia.Close(), ErrInvalidHandle)
	})
}

// TestCloseAbrupt: after an abrupt close of an adapter, waits on its dispatchers return ErrAbort and its peers see a
// disconnect. The address can be opened again immediately.
func TestCloseAbrupt(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		for range 3 {
			a, b := newHosts(t, n, Options{})
			var xs, ys [3]*point
			for i := range xs {
				xs[i], ys[i] = pair(a, b, nil)
				ok(t, xs[i].PostSend(xs[i].seg(0, 8), 1, 0)) // never received
				ok(t, xs[i].PostRecv(xs[i].seg(0, 8), 1, 0))
			}
			asking := a.point(nil) // its request is open when a closes
			asking.dial(b, nil)
			cr := b.request(t)
			evds := []*EVD{xs[0].recv, xs[1].request, xs[2].connect, a.ia.AsyncEVD()}
			errs := make(chan error, len(evds))
			for _, e := range evds {
				go func() {
					var ev Event
					_, err := e.Wait(-1, 1, &ev)
					errs <- err
				}()
			}
			for _, e := range evds {
				parked(t, e)
			}
			ok(t, a.ia.Close())
			for range evds {
				wants(t, "waiter", <-errs, ErrAbort)
			}
			for _, y := range ys {
				y.expect(EventDisconnected)
				y.still()
			}
			ok(t, cr.Reject(nil))
			var ev Event
			for _, e := range evds {
				wants(t, "dequeue after close", e.Dequeue(&ev), ErrInvalidHandle)
			}
			wants(t, "post after close", xs[0].PostSend(xs[0].seg(0, 8), 1, 0), ErrInvalidHandle)
			settled(t, b)
			a = newHost(t, n, 0, Options{})
			u, v := pair(a, b, nil)
			proves(u, v)
			ok(t, a.ia.Close())
			v.expect(EventDisconnected)
			ok(t, b.ia.Close())
		}
	})
}

// The passive side closes its adapter while a connection request is not answered. The active side gets an event.
func TestCloseWithUndecidedRequest(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x := a.point(nil)
		x.dial(b, nil)
		cr := b.request(t)
		ok(t, b.ia.Close())
		wants(t, "accept after close", cr.Reject(nil), ErrInvalidHandle)
		x.expect(EventNonPeerRejected)
	})
}

// TestCloseUnderLoad closes an adapter while other goroutines call its methods. All calls return, and no call uses a
// closed object.
func TestCloseUnderLoad(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		for range 8 {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			var stop atomic.Bool
			var calls atomic.Int64
			var wg sync.WaitGroup
			loop := func(f func()) {
				wg.Go(func() {
					for !stop.Load() {
						f()
						calls.Add(1)
						runtime.Gosched()
					}
				})
			}
			var evs [8]Event
			loop(func() { _ = x.PostRDMAWrite(x.seg(0, 3000), 1, y.lmr.Remote(0, 3000), 0) })
			loop(func() { _ = x.PostSend(x.seg(0, 8), 1, 0) })
			loop(func() { _ = x.PostRecv(x.seg(0, 8), 1, 0) })
			loop(func() { _ = x.request.Dequeue(&evs[0]) })
			loop(func() { _, _ = x.recv.Wait(time.Millisecond, 1, &evs[1]) })
			loop(func() { _, _ = x.connect.Wait(0, 1, &evs[2]) })
			loop(func() { _, _ = a.ia.Stats() })
			loop(func() { _ = a.ia.Dump(io.Discard) })
			loop(func() {
				if e, err := a.ia.CreateEVD(1, nil, EVDDTO); err == nil {
					_ = e.Free()
				}
			})
			loop(func() { _ = y.request.Dequeue(&evs[3]) })
			eventually(t, "load", func() bool { return calls.Load() > 2000 })
			loop(func() { _ = x.Disconnect(CloseGraceful) })
			loop(func() { _ = x.Reset() })
			ok(t, a.ia.Close())
			done := calls.Load()
			eventually(t, "calls after the close", func() bool { return calls.Load() > done+500 })
			stop.Store(true)
			wg.Wait()
			y.expect(EventDisconnected)
			ok(t, b.ia.Close())
		}
	})
}

// TestOpenTwice: several opens of one device in a process share one adapter. The opens share the qualifiers of the
// adapter and may share dispatchers. Closing one open does not affect the other opens.
func TestOpenTwice(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		if _, simulated := n.(*sim); simulated {
			t.Skip("links that a caller brings are an adapter of their own each time")
		}
		a, b := newHosts(t, n, Options{})
		c := newHost(t, n, 1, Options{})
		_, err := c.ia.CreatePSP(testQual, must(c.ia.CreateEVD(1, nil, EVDCR))(t), PSPConsumer)
		wants(t, "qualifier of another open", err, ErrConnQualInUse)
		_, err = c.ia.CreateEP(b.pz, EPConfig{})
		wants(t, "zone of another open", err, ErrInvalidHandle)
		x, y := pair(a, b, nil)
		z := c.point(nil)
		ok(t, z.Free())
		z.recv = y.recv
		z.EP = must(c.ia.CreateEP(c.pz, EPConfig{RecvEVD: y.recv, RequestEVD: z.request, ConnectEVD: z.connect}))(t)
		w := a.point(nil)
		w.dial(b, nil)
		ok(t, b.request(t).Accept(z.EP, nil))
		w.expect(EventEstablished)
		z.expect(EventEstablished)
		proves(x, y)
		ok(t, c.ia.Close())
		w.expect(EventDisconnected)
		proves(x, y)
	})
}

// A thousand opens of one adapter take little time and leave no resources behind.
func TestManyOpens(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		if _, simulated := n.(*sim); simulated {
			t.Skip("links that a caller brings are an adapter of their own each time")
		}
		var ias []*IA
		files := len(openFiles())
		for range 1000 {
			ias = append(ias, must(n.open(0, Options{}))(t))
		}
		if got := len(openFiles()); files > 0 && got > files+45 { // an adapter over AF_XDP has some 40
			t.Errorf("%d files are open, %d before", got, files)
		}
		for _, ia := range ias {
			ok(t, ia.CloseWith(CloseGraceful))
		}
	})
}
