package dat

import (
	"errors"
	"testing"
)

var iaCloseRules = []topic{
	{"dat_ia_close", []rule{
		{"a graceful close is refused while an object exists, and changes nothing", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			for what, make1 := range map[string]func(ia *IA) (free func() error){
				"a PZ":   func(ia *IA) func() error { return must(ia.CreatePZ())(t).Free },
				"an EVD": func(ia *IA) func() error { return must(ia.CreateEVD(1, nil, EVDDTO))(t).Free },
				"an LMR": func(ia *IA) func() error {
					pz := must(ia.CreatePZ())(t)
					l := must(ia.CreateLMR(make([]byte, 1), pz, 0))(t)
					return func() error { return errors.Join(l.Free(), pz.Free()) }
				},
				"an EP": func(ia *IA) func() error {
					pz := must(ia.CreatePZ())(t)
					ep := must(ia.CreateEP(pz, EPConfig{}))(t)
					return func() error { return errors.Join(ep.Free(), pz.Free()) }
				},
				"a PSP": func(ia *IA) func() error {
					evd := must(ia.CreateEVD(1, nil, EVDCR))(t)
					psp := must(ia.CreatePSP(77, evd, PSPConsumer))(t)
					return func() error { return errors.Join(psp.Free(), evd.Free()) }
				},
			} {
				ia := b.reopen(Options{})
				free := make1(ia)
				wants(t, "close with "+what, ia.CloseWith(CloseGraceful), with(ErrInvalidState, SubInvalidStateIAInUse))
				ok(t, free())
				ok(t, ia.CloseWith(CloseGraceful))
			}
			proves(x, y)
		}},
		{"a graceful close does not depend on the asynchronous EVD", func(t *testing.T, n network) {
			ok(t, must(n.open(0, Options{}))(t).CloseWith(CloseGraceful))
			ia := must(n.open(0, Options{}))(t)
			ok(t, ia.AsyncEVD().Free())
			ok(t, ia.CloseWith(CloseGraceful))
		}},
		{"flags that are none are refused, after the handle was looked at", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			wants(t, "close", h.ia.CloseWith(2), ErrInvalidParameter)
			must(h.ia.CreatePZ())(t)
			ok(t, h.ia.Close())
			wants(t, "close again", h.ia.CloseWith(2), ErrInvalidHandle)
			wants(t, "close of nothing", (*IA)(nil).CloseWith(2), ErrInvalidHandle)
		}},
		{"a second close finds no adapter", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			ok(t, h.ia.Close())
			wants(t, "abruptly", h.ia.Close(), ErrInvalidHandle)
			wants(t, "gracefully", h.ia.CloseWith(CloseGraceful), ErrInvalidHandle)
		}},
		{"abruptly every object is gone", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			ok(t, a.ia.Close())
			for _, o := range []Handle{a.ia, a.ia.AsyncEVD(), a.pz, x.EP, x.lmr, x.recv, x.request, x.connect} {
				_, err := o.HandleType()
				wants(t, "handle", err, ErrInvalidHandle)
			}
		}},
		{"abruptly peers see a disconnect and their work is flushed", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, y.PostRecv(y.seg(0, 8), 5, 0))
			ok(t, x.PostRecv(x.seg(0, 8), 6, 0))
			ok(t, a.ia.Close())
			y.expect(EventDisconnected)
			y.done(y.recv, 5, DTOReceive, DTOFlushed, 0)
		}},
		{"abruptly whoever waits for events is released", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			evds := []*EVD{must(h.ia.CreateEVD(1, nil, EVDDTO))(t), h.ia.AsyncEVD()}
			errs := make(chan error)
			for _, e := range evds {
				go func() {
					_, err := e.Wait(-1, 1, new(Event))
					errs <- err
				}()
				parked(t, e)
			}
			ok(t, h.ia.Close())
			for range evds {
				wants(t, "waiter", <-errs, ErrAbort)
			}
		}},
		{"a connection request that was not answered is refused", func(t *testing.T, n network) {
			for _, flags := range []CloseFlags{CloseAbrupt, CloseGraceful} {
				a, b := newHosts(t, n, Options{})
				x := a.point(nil)
				x.dial(b, nil)
				b.request(t)
				if flags == CloseGraceful {
					ok(t, b.psp.Free())
					ok(t, b.cr.Free())
					ok(t, b.pz.Free())
				}
				ok(t, b.ia.CloseWith(flags))
				x.expect(EventNonPeerRejected)
				ok(t, a.ia.Close())
			}
		}},
		{"its qualifiers can be used again, by other opens and by later opens", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			other := b.reopen(Options{})
			ok(t, b.ia.Close())
			must(other.CreatePSP(testQual, must(other.CreateEVD(1, nil, EVDCR))(t), PSPConsumer))(t)
			ok(t, other.Close())
			b = newHost(t, n, 1, Options{})
			b.listen(testQual, 1)
			pair(a, b, nil)
		}},
		{"the memory is the caller's again", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, x.PostRDMAWrite(x.seg(0, pointMem), 1, y.lmr.Remote(0, pointMem), 0))
			ok(t, b.ia.Close())
			clear(y.mem) // the race detector reports a later access by the engine
			ev := await(t, x.request, EventDTOCompletion)
			if ev.Status != DTOSuccess && ev.Status != DTOFlushed {
				t.Errorf("the write ended with %v", ev.Status)
			}
			x.expect(EventDisconnected)
		}},
	}},
}
