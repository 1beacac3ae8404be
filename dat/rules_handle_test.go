package dat

import (
	"fmt"
	"strings"
	"testing"
)

var handleRules = []topic{
	{"dat_set_consumer_context", []rule{
		{"every object holds one context, the last that was set", func(t *testing.T, n network) {
			objects := everyObject(t, n)
			for i, o := range objects {
				ok(t, o.SetConsumerContext("before"))
				ok(t, o.SetConsumerContext(i))
			}
			for i, o := range objects {
				if v, err := o.ConsumerContext(); v != i || err != nil {
					t.Errorf("%T: %v, %v, want %d", o, v, err, i)
				}
			}
		}},
		{"nil takes it away", func(t *testing.T, n network) {
			for _, o := range everyObject(t, n) {
				ok(t, o.SetConsumerContext(1))
				ok(t, o.SetConsumerContext(nil))
				if v, err := o.ConsumerContext(); v != nil || err != nil {
					t.Errorf("%T: %v, %v", o, v, err)
				}
			}
		}},
		{"a freed, closed or nil object has no context", func(t *testing.T, n network) {
			for _, o := range deadObjects(t, n) {
				wants(t, fmt.Sprintf("%T", o), o.SetConsumerContext(1), ErrInvalidHandle)
			}
		}},
	}},
	{"dat_get_consumer_context", []rule{
		{"it is nil where none was set", func(t *testing.T, n network) {
			for _, o := range everyObject(t, n) {
				if v, err := o.ConsumerContext(); v != nil || err != nil {
					t.Errorf("%T: %v, %v", o, v, err)
				}
			}
		}},
		{"the object in an event has its context", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, y.SetConsumerContext(y))
			ok(t, y.recv.SetConsumerContext(b))
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostSend(nil, 1, 0))
			ev := await(t, y.recv, EventDTOCompletion)
			if v := must(ev.EP.ConsumerContext())(t); v != y {
				t.Errorf("the endpoint has %v", v)
			}
			if v := must(ev.EVD.ConsumerContext())(t); v != b {
				t.Errorf("the dispatcher has %v", v)
			}
		}},
		{"a freed, closed or nil object has none", func(t *testing.T, n network) {
			for _, o := range deadObjects(t, n) {
				_, err := o.ConsumerContext()
				wants(t, fmt.Sprintf("%T", o), err, ErrInvalidHandle)
			}
		}},
	}},
	{"dat_get_handle_type", []rule{
		{"every object has the type of its kind", func(t *testing.T, n network) {
			for _, o := range everyObject(t, n) {
				got, err := o.HandleType()
				if kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*dat."); got.String() != kind || err != nil {
					t.Errorf("%T: %v, %v", o, got, err)
				}
			}
		}},
		{"the numbers are those of the specification", func(t *testing.T, _ network) {
			for i, want := range []string{"CR", "EP", "EVD", "IA", "LMR", "PSP", "PZ", "RMR", "RSP", "CNO", "SRQ"} {
				if got := HandleType(i).String(); got != want {
					t.Errorf("%d is %s, want %s", i, got, want)
				}
			}
		}},
		{"a freed, closed or nil object has none", func(t *testing.T, n network) {
			for _, o := range deadObjects(t, n) {
				_, err := o.HandleType()
				wants(t, fmt.Sprintf("%T", o), err, ErrInvalidHandle)
			}
		}},
	}},
}

// everyObject makes an object of each kind.
func everyObject(t *testing.T, n network) []Handle {
	a, b := newHosts(t, n, Options{})
	x := a.point(nil)
	x.dial(b, nil)
	rsp := must(a.ia.CreateRSP(testQual, must(a.ia.CreateEP(a.pz, EPConfig{}))(t), must(a.ia.CreateEVD(1, nil, EVDCR))(t)))(t)
	return []Handle{a.ia, x.EP, x.recv, a.ia.AsyncEVD(), b.request(t), b.psp, a.pz, x.lmr, rsp,
		must(a.pz.CreateRMR())(t), must(a.ia.CreateCNO(nil))(t), must(a.ia.CreateSRQ(a.pz, SRQAttr{MaxRecvDTOs: 1}))(t)}
}

// deadObjects returns objects of each kind that are freed or nil, or whose adapter is closed.
func deadObjects(t *testing.T, n network) []Handle {
	a, b := newHosts(t, n, Options{})
	x := a.point(nil)
	x.dial(b, nil)
	cr := b.request(t)
	ok(t, cr.Reject(nil))
	ok(t, b.psp.Free())
	pz := must(b.ia.CreatePZ())(t)
	lmr := must(b.ia.CreateLMR(make([]byte, 1), pz, 0))(t)
	ep := must(b.ia.CreateEP(pz, EPConfig{}))(t)
	evd := must(b.ia.CreateEVD(1, nil, EVDDTO))(t)
	rmr := must(pz.CreateRMR())(t)
	srq := must(b.ia.CreateSRQ(pz, SRQAttr{MaxRecvDTOs: 1}))(t)
	cno := must(b.ia.CreateCNO(nil))(t)
	crs := must(b.ia.CreateEVD(1, nil, EVDCR))(t)
	rsp := must(b.ia.CreateRSP(1, nil, crs))(t)
	for _, o := range []interface{ Free() error }{ep, lmr, rmr, srq, cno, rsp, crs, pz, evd} {
		ok(t, o.Free())
	}
	dead := []Handle{cr, b.psp, pz, lmr, ep, evd, rmr, srq, cno, rsp, crs, a.ia, x.EP, x.recv, a.ia.AsyncEVD(), a.pz, x.lmr,
		(*IA)(nil), (*EP)(nil), (*EVD)(nil), (*CR)(nil), (*PSP)(nil), (*PZ)(nil), (*LMR)(nil),
		(*RMR)(nil), (*SRQ)(nil), (*CNO)(nil), (*RSP)(nil)}
	ok(t, a.ia.Close())
	return dead
}
