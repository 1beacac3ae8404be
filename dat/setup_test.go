package dat

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Several calls start a connection with one endpoint at the same time. Exactly one of them succeeds.
func TestOneTakesTheEndpoint(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		a.listen(testQual, 64)
		for i := range 16 {
			x := a.point(nil)
			b.point(nil).dial(a, nil)
			cr := a.request(t)
			var won atomic.Int32
			var wg sync.WaitGroup
			for _, call := range []func() error{
				func() error { return x.Connect(b.addr, testQual, patience, nil) },
				func() error { return x.Connect(b.addr, testQual, patience, nil) },
				func() error { return cr.Accept(x.EP, nil) },
				func() error {
					_, err := a.ia.CreateRSP(ConnQual(i), x.EP, a.cr)
					return err
				},
			} {
				wg.Go(func() {
					if call() == nil {
						won.Add(1)
					}
				})
			}
			wg.Wait()
			if won.Load() != 1 {
				t.Errorf("%d calls have taken the endpoint", won.Load())
			}
		}
	})
}

// TestFreeRSPWhileRequestComes frees a reserved service point while a request for it arrives. Either the request is
// delivered with the endpoint, or no request is delivered and the endpoint is unconnected.
func TestFreeRSPWhileRequestComes(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := listener(t, n, 64)
		for qual := ConnQual(9); qual < 29; qual++ { // a new qualifier, because a request of a freed endpoint may arrive late
			x, y := a.point(nil), b.point(nil)
			rsp := must(b.ia.CreateRSP(qual, y.EP, b.cr))(t)
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := x.Connect(b.addr, qual, patience, nil); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if err := rsp.Free(); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
			switch state := y.State(); {
			case state == EPUnconnected && b.cr.Len() == 0:
				ok(t, x.Free())
			case state == EPPassiveConnectionPending:
				ok(t, b.request(t).Reject(nil))
				x.expect(EventPeerRejected)
			default:
				t.Fatalf("the endpoint is %v, and there are %d requests", state, b.cr.Len())
			}
			ok(t, y.Free())
		}
	})
}

// Connection requests are accepted, rejected, handed off and closed at the same time. Each is answered once.
func TestAnswersAtOnce(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
		for range 16 {
			x, y := asks(a, b, testQual), b.point(nil)
			cr := b.request(t)
			var won atomic.Int32
			var wg sync.WaitGroup
			for _, answer := range []func() error{
				func() error { return cr.Accept(y.EP, nil) },
				func() error { return cr.Reject(nil) },
				func() error { return cr.Handoff(9) },
			} {
				wg.Go(func() {
					if answer() == nil {
						won.Add(1)
					}
				})
			}
			wg.Wait()
			if won.Load() != 1 {
				t.Errorf("%d answers", won.Load())
			}
			if b.cr.Len() == 1 { // handed off
				ok(t, b.request(t).Reject(nil))
			}
			var ev Event
			if _, err := x.connect.Wait(patience, 1, &ev); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Calls on endpoints and connection requests return even if the adapter is closed meanwhile.
func TestCloseDuringSetUp(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		for range 4 {
			a, b := newHosts(t, n, Options{})
			must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
			stop := make(chan struct{})
			var calls atomic.Int64
			var wg sync.WaitGroup
			loop := func(f func()) {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							f()
							calls.Add(1)
						}
					}
				})
			}
			x, y, z := a.point(nil), b.point(nil), b.point(nil)
			loop(func() {
				_ = x.Connect(b.addr, 9, patience, nil)
				_ = x.Disconnect(CloseAbrupt)
				_ = x.Reset()
			})
			loop(func() {
				if rsp, err := b.ia.CreateRSP(7, y.EP, b.cr); err == nil {
					_, _ = rsp.Query()
					_ = rsp.Free()
				}
			})
			loop(func() {
				_ = z.Modify(EPFieldMaxRecvDTOs, &EPParam{Attr: EPAttr{MaxRecvDTOs: 100 + int(calls.Load()%100)}})
				_, _ = z.Query()
			})
			loop(func() {
				var ev Event
				if b.cr.Dequeue(&ev) != nil {
					return
				}
				p, _ := ev.CR.Query()
				if calls.Load()%2 == 0 {
					_ = ev.CR.Handoff(testQual)
				}
				if p.LocalEP != nil {
					_ = p.LocalEP.Modify(epHandles, &EPParam{PZ: b.pz, ConnectEVD: z.connect})
				}
				_ = ev.CR.Accept(nil, nil)
				_ = ev.CR.Reject(nil)
			})
			eventually(t, "load", func() bool { return calls.Load() > 200 })
			ok(t, b.ia.Close())
			ok(t, a.ia.Close())
			close(stop)
			wg.Wait()
		}
	})
}
