package dat

import (
	"runtime"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// freedEndpoints are endpoints that a test has freed, and that nothing may keep alive.
type freedEndpoints []weak.Pointer[EP]

func (f *freedEndpoints) add(ep *EP) { *f = append(*f, weak.Make(ep)) }

// kept returns the number of endpoints that are still reachable.
func (f freedEndpoints) kept() (n int) {
	runtime.GC()
	for _, ep := range f {
		if ep.Value() != nil {
			n++
		}
	}
	return n
}

// Connections of endpoints with a shared receive queue come and go. A program that frees these endpoints, and never
// reads the asynchronous dispatcher, keeps neither the endpoints nor their events.
func TestFreedEndpointsLeaveNoNotices(t *testing.T) {
	a, b := newHosts(t, newSim(t), Options{AsyncQLen: 4})
	c := b.common(4, 64)
	c.post(0, 4)
	evd := must(b.ia.CreateEVD(64, nil, EVDConnection))(t)
	attr := DefaultEPAttr()
	const count = 20
	stays := must(b.ia.CreateEP(b.pz, EPConfig{ConnectEVD: evd, SRQ: c.SRQ, Attr: &attr}))(t)
	var freed freedEndpoints
	x := a.point(nil)
	for i := range count + 1 {
		ep := stays
		if i > 0 {
			ep = must(b.ia.CreateEP(b.pz, EPConfig{ConnectEVD: evd, SRQ: c.SRQ, Attr: &attr}))(t)
		}
		x.dial(b, nil)
		ok(t, b.request(t).Accept(ep, nil))
		await(t, evd, EventEstablished)
		x.expect(EventEstablished)
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		await(t, evd, EventDisconnected)
		ok(t, x.Reset())
		if ep != stays {
			ok(t, ep.Free())
			freed.add(ep)
		}
	}
	async := b.ia.AsyncEVD()
	if n := async.Len(); n != 1 {
		t.Errorf("%d asynchronous events, want that of the endpoint that is not freed", n)
	}
	eventually(t, "collection of the freed endpoints", func() bool { return freed.kept() == 0 })
	b.async(EventAsyncEPBroken, stays, ReasonEPTransferToError)
	ok(t, stays.Free())
	expectNoEvent(t, async)
}

// An asynchronous event that is removed with its endpoint leaves no trigger in the CNO.
func TestRemovedNoticeLeavesNoTrigger(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{})
	c := h.common(1, 64)
	cno := must(h.ia.CreateCNO(nil))(t)
	ok(t, h.ia.AsyncEVD().ModifyCNO(cno))
	y := c.point(nil)
	y.onNotice(wire.NoticeEnd)
	ok(t, y.Free())
	if evd := must(cno.Trigger())(t); evd != nil {
		t.Errorf("the CNO has the trigger of a dispatcher with %d events", evd.Len())
	}
	ok(t, h.ia.AsyncEVD().ModifyCNO(nil))
}

// A dispatcher is freed with a connection request in it. The requester is refused, and the request's endpoint is as after
// CR.Reject. No request is left that nobody can answer.
func TestFreedDispatcherRefusesRequests(t *testing.T) {
	listen := map[string]func(*host, *EVD, *point) func() error{
		"PSP": func(h *host, e *EVD, _ *point) func() error {
			return must(h.ia.CreatePSP(testQual, e, PSPConsumer))(h.t).Free
		},
		"PSP, EP made": func(h *host, e *EVD, _ *point) func() error {
			return must(h.ia.CreatePSP(testQual, e, PSPProvider))(h.t).Free
		},
		"RSP":          func(h *host, e *EVD, y *point) func() error { return must(h.ia.CreateRSP(testQual, y.EP, e))(h.t).Free },
		"RSP, EP made": func(h *host, e *EVD, _ *point) func() error { return must(h.ia.CreateRSP(testQual, nil, e))(h.t).Free },
	}
	for name, create := range listen {
		t.Run(name, func(t *testing.T) {
			n := newSim(t)
			var cut atomic.Bool
			a := newHost(t, n, 0, Options{})
			b := newHost(t, n, 1, Options{Wrap: func(l link.Link) link.Link { return cutOff{l, &cut} }})
			x, y := a.point(nil), b.point(nil)
			for _, routed := range []bool{true, false} {
				requests := must(b.ia.CreateEVD(8, nil, EVDCR))(t)
				free := create(b, requests, y)
				x.dial(b, nil)
				eventually(t, "the request", func() bool {
					b.ia.a.flush()
					return requests.Len() == 1
				})
				cut.Store(!routed)
				ok(t, free())
				ok(t, requests.Free())
				cut.Store(false)
				if n := undecided(t, b.ia.a); n != 0 {
					t.Errorf("%d requests are left", n)
				}
				x.expect(EventNonPeerRejected)
				ok(t, x.Reset())
			}
			ok(t, y.Free())
		})
	}
}

// The provider's endpoint of a rejected request is collected, although package wire remembers the request.
func TestRejectedRequestLeavesNoEndpoint(t *testing.T) {
	n := newSim(t)
	a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
	requests := must(b.ia.CreateEVD(8, nil, EVDCR))(t)
	must(b.ia.CreatePSP(testQual, requests, PSPProvider))(t)
	x := a.point(nil)
	x.dial(b, nil)
	cr := await(t, requests, EventConnectionRequest).CR
	var freed freedEndpoints
	freed.add(must(cr.Query())(t).LocalEP)
	ok(t, cr.Reject(nil))
	x.expect(EventPeerRejected)
	eventually(t, "collection of the endpoint", func() bool { return freed.kept() == 0 })
}
