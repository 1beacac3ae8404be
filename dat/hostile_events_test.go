package dat

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/wire"
)

// Peers end many connections of endpoints with a shared receive queue at the same time. The asynchronous dispatcher gets
// an event for each endpoint, each once, and no EventAsyncIACatastrophic, which says that the adapter is broken.
func TestNoticesOfPeersTakeNoSlots(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{AsyncQLen: 4})
	const count = 100
	pz := must(h.ia.CreatePZ())(t)
	eps := map[any]bool{}
	for range count {
		ep := h.ia.newEP(&EPParam{PZ: pz, Attr: DefaultEPAttr()})
		eps[ep] = true
		for range 3 {
			ep.onNotice(wire.NoticeEnd)
		}
	}
	async := h.ia.AsyncEVD()
	wants(t, "a queue length of 3", async.Resize(3), nil)
	for range count {
		var ev Event
		ok(t, async.Dequeue(&ev))
		if ev.Number != EventAsyncEPBroken || ev.Reason != ReasonEPTransferToError || !eps[ev.Source] {
			t.Fatalf("event %v of %v", ev.Number, ev.Source)
		}
		delete(eps, ev.Source)
	}
	expectNoEvent(t, async)
	if n := len(async.notices); n != 0 {
		t.Errorf("%d notices are left", n)
	}
}

// A refused connection request costs little: no endpoint is created for it.
func TestRefusedRequestHasNoEndpoint(t *testing.T) {
	h := newHost(t, newSim(t), 0, Options{})
	requests := must(h.ia.CreateEVD(1, nil, EVDCR))(t)
	psp := must(h.ia.CreatePSP(testQual, requests, PSPProvider))(t)
	for i, accepted := range []bool{true, false} {
		r := &wire.Request{From: netip.MustParseAddrPort("192.0.2.1:17473")}
		if psp.deliver(r) != accepted {
			t.Errorf("request %d was accepted: %v", i, !accepted)
		}
		if ep := r.User.(*CR).ep; (ep != nil) != accepted {
			t.Errorf("request %d has the endpoint %v", i, ep)
		}
	}
}
