package dat

import (
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// cutOff is a link that loses its routes, and still receives.
type cutOff struct {
	link.Link
	cut *atomic.Bool
}

func (c cutOff) ResolveFrom(from netip.Addr, to netip.AddrPort, entropy uint16) (link.Path, error) {
	if c.cut.Load() {
		return 0, link.ErrUnreachable
	}
	return c.Link.ResolveFrom(from, to, entropy)
}

// undecided returns the number of connection requests of an adapter that are not answered yet.
func undecided(t *testing.T, a *adapter) (n int) {
	t.Helper()
	for _, d := range a.drivers {
		ok(t, d.runPolled(func(e *wire.Engine) error {
			n += len(e.Undecided(func(wire.Service) bool { return true }))
			return nil
		}))
	}
	return n
}

// TestRequestWithoutRouteIsFreed: if no route leads to the requester, every kind of answer ends the request. Reject and
// Handoff free the request's endpoint. With Accept, the endpoint gets EventAcceptCompletionError, and its receives are
// flushed. The requester's next attempt is a new request. When the route is back, this new request succeeds.
func TestRequestWithoutRouteIsFreed(t *testing.T) {
	for name, answer := range map[string]func(*CR, *EP) error{
		"accept":           func(c *CR, ep *EP) error { return c.Accept(ep, nil) },
		"reject":           func(c *CR, _ *EP) error { return c.Reject([]byte("no")) },
		"handoff":          func(c *CR, _ *EP) error { return c.Handoff(testQual) },
		"accept, EP made":  func(c *CR, _ *EP) error { return c.Accept(nil, nil) },
		"reject, EP made":  func(c *CR, _ *EP) error { return c.Reject(nil) },
		"handoff, EP made": func(c *CR, _ *EP) error { return c.Handoff(testQual) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newSim(t)
			var cut atomic.Bool
			a := newHost(t, n, 0, Options{})
			b := newHost(t, n, 1, Options{Wrap: func(l link.Link) link.Link { return cutOff{l, &cut} }})
			b.listen(testQual, 8)
			const made = 9
			must(b.ia.CreatePSP(made, b.cr, PSPProvider))(t)
			x, qual := a.point(nil), testQual
			if len(name) > len("handoff") {
				qual = made
			}
			ok(t, x.Connect(b.addr, qual, patience, nil))
			cr, y := b.request(t), b.point(nil)
			if ep := must(cr.Query())(t).LocalEP; ep != nil {
				y.configure(ep)
			}
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			cut.Store(true)
			ok(t, answer(cr, y.EP))
			wants(t, "again", cr.Reject(nil), ErrInvalidHandle)
			switch accept := name[0] == 'a'; {
			case accept:
				y.done(y.recv, 1, DTOReceive, DTOFlushed, 0)
				y.expect(EventAcceptCompletionError)
				if got := y.State(); got != EPDisconnected {
					t.Errorf("the endpoint is %v", got)
				}
				ok(t, y.Reset())
			case qual == made:
				wants(t, "freed", y.Free(), ErrInvalidHandle)
				y = b.point(nil)
			}
			if got := y.State(); got != EPUnconnected {
				t.Errorf("the endpoint is %v", got)
			}
			cut.Store(false)
			cr = b.request(t) // the next attempt
			if got := undecided(t, b.ia.a); got != 1 {
				t.Errorf("%d requests are kept, want the next try alone", got)
			}
			if must(cr.Query())(t).LocalEP != nil {
				ok(t, cr.Reject(nil))
				x.expect(EventPeerRejected)
				return
			}
			ok(t, cr.Accept(y.EP, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
		})
	}
}

// An address sends its maximum number of requests, and no route leads back to it. Its next request is still served.
func TestRequestsWithoutRouteLeaveRoom(t *testing.T) {
	n := newSim(t)
	var cut atomic.Bool
	a := newHost(t, n, 0, Options{})
	b := newHost(t, n, 1, Options{Wrap: func(l link.Link) link.Link { return cutOff{l, &cut} }})
	b.listen(testQual, 8)
	cut.Store(true)
	const perAddress = 512
	x := a.point(nil)
	for range perAddress + 1 {
		x.dial(b, nil)
		ok(t, b.request(t).Reject(nil))
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		ok(t, x.Reset())
	}
	cut.Store(false)
	x.dial(b, []byte("served"))
	for cr := b.request(t); ; cr = b.request(t) {
		if p, err := cr.Query(); err != nil || string(p.PrivateData) != "served" {
			_ = cr.Reject(nil) // a late copy of an earlier request, which may be over
		} else if cr.Accept(b.point(nil).EP, nil) == nil {
			break
		}
	}
	x.expect(EventEstablished)
}

// When an IA closes, it frees the requests that it cannot answer. Other opens of the device continue to work.
func TestCloseFreesRequestsWithoutRoute(t *testing.T) {
	n := newUDP(t)
	var cut atomic.Bool
	a := newHost(t, n, 0, Options{})
	b := newHost(t, n, 1, Options{Wrap: func(l link.Link) link.Link { return cutOff{l, &cut} }})
	b.listen(testQual, 8)
	other := newHost(t, n, 1, Options{})
	x := a.point(nil)
	x.dial(b, nil)
	b.request(t)
	cut.Store(true)
	ok(t, b.ia.Close())
	if got := undecided(t, other.ia.a); got != 0 {
		t.Errorf("%d requests are kept", got)
	}
	ok(t, x.Disconnect(CloseAbrupt))
}
