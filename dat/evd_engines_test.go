package dat

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
)

// TestSeveralEngines uses an adapter with several queues. Endpoints are spread over the engines. A dispatcher that
// several engines feed loses no event. After a failed Accept, a connected endpoint stays on its engine.
func TestSeveralEngines(t *testing.T) {
	a, b := newManyQueued(t)
	shared := must(a.ia.CreateEVD(4096, nil, EVDDTO))(t)
	const pairs, each = 6, 200
	var xs, ys [pairs]*point
	engines := map[*driver]bool{}
	for i := range pairs {
		x, y := a.point(nil), b.point(nil)
		ok(t, x.Free())
		x.request = shared
		x.EP = must(a.ia.CreateEP(a.pz, EPConfig{RecvEVD: x.recv, RequestEVD: shared, ConnectEVD: x.connect}))(t)
		join(x, y)
		xs[i], ys[i] = x, y
		engines[x.drv.Load()] = true
		wants(t, "connect again", x.Connect(b.addr, testQual, patience, nil), ErrInvalidState)
		z := a.point(nil) // its request may go to another engine than y's
		z.dial(b, nil)
		cr := b.request(t)
		wants(t, "accept with a connected endpoint", cr.Accept(y.EP, nil), ErrInvalidState)
		ok(t, cr.Reject(nil))
		z.expect(EventPeerRejected)
	}
	if len(engines) != 3 {
		t.Errorf("%d engines are in use, want 3", len(engines))
	}
	for i := range uint64(each) {
		for p, x := range xs {
			ok(t, x.PostRDMAWrite(x.seg(0, 100), uint64(p)<<32|i, ys[p].lmr.Remote(0, 100), 0))
		}
	}
	var next [pairs]uint64
	for range pairs * each {
		ev := await(t, shared, EventDTOCompletion)
		if p := ev.Cookie >> 32; ev.Status != DTOSuccess || ev.Cookie&0xffffffff != next[p] || ev.EP != xs[p].EP {
			t.Fatalf("endpoint %d: completion %d %v, want %d", p, ev.Cookie&0xffffffff, ev.Status, next[p])
		} else {
			next[p]++
		}
	}
	expectNoEvent(t, shared)
}

// TestOrderAcrossEngines: the events of an endpoint that moves from one engine to another keep their order, even if the
// consumer takes no event before the move.
func TestOrderAcrossEngines(t *testing.T) {
	a, b := newManyQueued(t)
	x := a.point(nil)
	engines := map[*driver]bool{}
	const rounds, each = 5, 3
	for round := range uint64(rounds) {
		y := b.point(nil)
		for i := range uint64(each) {
			ok(t, x.PostRecv(nil, round*each+i, 0))
		}
		join(x, y)
		engines[x.drv.Load()] = true
		ok(t, y.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		ok(t, x.Reset())
	}
	if len(engines) < 2 || x.recv.Len() != rounds*each {
		t.Fatalf("%d events of %d engines", x.recv.Len(), len(engines))
	}
	for i := range uint64(rounds * each) {
		x.done(x.recv, i, DTOReceive, DTOFlushed, 0)
	}
	expectNoEvent(t, x.recv, a.ia.AsyncEVD())
}

// newManyQueued opens both sides with three queues each, on a simulated network.
func newManyQueued(t *testing.T) (a, b *host) {
	return newManyQueuedOver(t, func(l link.Link) link.Link { return l })
}

// newManyQueuedOver is newManyQueued, but each link of side a is layer(link).
func newManyQueuedOver(t *testing.T, layer func(link.Link) link.Link) (a, b *host) {
	const queues = 3
	net := simlink.New(simlink.Config{Immediate: true})
	var hosts [2]*host
	for side := range hosts {
		var links []link.Link
		for q := range queues {
			links = append(links, net.Link(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(q), byte(side + 1)}), DefaultPort)))
			if side == 0 {
				links[q] = layer(links[q])
			}
		}
		ia := must(OpenLink(Options{}, links...))(t)
		t.Cleanup(func() { ok(t, ia.Close()) })
		hosts[side] = &host{t: t, ia: ia, addr: links[0].Local().Addr(), pz: must(ia.CreatePZ())(t)}
	}
	hosts[1].listen(testQual, 8)
	return hosts[0], hosts[1]
}
