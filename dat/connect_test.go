package dat

import (
	"bytes"
	"math"
	"net/netip"
	"sync"
	"testing"
	"time"
)

func TestConnect(t *testing.T) {
	longest := bytes.Repeat([]byte("x"), maxPrivateData)
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, private := range [][]byte{nil, []byte("hello"), longest} {
			x, y := a.point(nil), b.point(nil)
			given := bytes.Clone(private)
			x.dial(b, given)
			if len(given) > 0 {
				given[0] = '!' // it was copied
			}
			ev := await(t, b.cr, EventConnectionRequest)
			if ev.PSP != b.psp || ev.ConnQual != testQual || ev.EVD != b.cr {
				t.Errorf("request: %+v", ev)
			}
			param, err := ev.CR.Query()
			ok(t, err)
			if !bytes.Equal(param.PrivateData, private) || param.RemoteAddress != a.addr || param.RemotePort == 0 {
				t.Errorf("request: %+v, want %q from %v", param, private, a.addr)
			}
			for i := range param.PrivateData { // programs write their answer where the question was
				param.PrivateData[i] ^= 1
			}
			ok(t, ev.CR.Accept(y.EP, param.PrivateData))
			established := x.expect(EventEstablished)
			if x.State() != EPConnected || y.State() != EPConnected {
				t.Errorf("when the active side is established: %v, %v", x.State(), y.State())
			}
			if len(y.expect(EventEstablished).PrivateData) != 0 {
				t.Error("private data on the passive side")
			}
			if !bytes.Equal(established.PrivateData, param.PrivateData) {
				t.Errorf("accept: %q, want %q", established.PrivateData, param.PrivateData)
			}
			proves(x, y)
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			y.expect(EventDisconnected)
			if !bytes.Equal(established.PrivateData, param.PrivateData) {
				t.Error("private data changed")
			}
		}
	})
}

// An endpoint can connect to its own adapter, and to another open of its own adapter.
func TestConnectToSelf(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		b := newHost(t, n, 1, Options{})
		b.listen(testQual, 8)
		x, y := pair(b, b, nil)
		proves(x, y)
	})
}

func TestRefused(t *testing.T) {
	v6 := netip.MustParseAddr("2001:db8::1")
	for _, tc := range []struct {
		name    string
		backlog int // 0: no listener
		reject  []byte
		want    EventNumber
	}{
		{"no listener", 0, nil, EventNonPeerRejected},
		{"backlog full", 1, nil, EventNonPeerRejected},
		{"rejected", 2, []byte("go away"), EventPeerRejected},
		{"rejected silently", 2, []byte{}, EventPeerRejected},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, n network) {
				a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
				if tc.backlog > 0 {
					b.listen(testQual, tc.backlog)
				}
				var first *point
				if tc.backlog == 1 { // fills the backlog
					first = a.point(nil)
					first.dial(b, nil)
					eventually(t, "request", func() bool { return b.cr.Len() == 1 })
				}
				x := a.point(nil)
				ok(t, x.PostRecv(x.seg(0, 8), 9, 0))
				x.dial(b, nil)
				if tc.reject != nil {
					cr := b.request(t)
					ok(t, cr.Reject(tc.reject))
					wants(t, "second answer", cr.Accept(b.point(nil).EP, nil), ErrInvalidHandle)
				}
				ev := x.expect(tc.want)
				if x.State() != EPDisconnected {
					t.Errorf("state %v", x.State())
				}
				if !bytes.Equal(ev.PrivateData, tc.reject) {
					t.Errorf("reject carries %q, want %q", ev.PrivateData, tc.reject)
				}
				x.done(x.recv, 9, DTOReceive, DTOFlushed, 0)
				x.still()
				// The endpoint can be used again, and a connection request that is still in the backlog can be
				// accepted.
				ok(t, x.Reset())
				if x.State() != EPUnconnected {
					t.Errorf("after reset: %v", x.State())
				}
				if first == nil {
					if tc.backlog == 0 {
						b.listen(testQual, 2)
					}
					first = x
					x.dial(b, nil)
				}
				y := b.point(nil)
				ok(t, b.request(t).Accept(y.EP, nil))
				first.expect(EventEstablished)
				y.expect(EventEstablished)
				proves(first, y)
			})
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		eachLink(t, func(t *testing.T, n network) {
			x := newHost(t, n, 0, Options{}).point(nil)
			wants(t, "no route", x.Connect(v6, testQual, time.Second, nil), ErrInvalidAddress)
			if x.State() != EPUnconnected {
				t.Errorf("state %v", x.State())
			}
			x.still()
		})
	})
}

func TestConnectTimesOut(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{Limits: Limits{GiveUp: 200 * time.Millisecond}})
		for _, to := range []netip.Addr{n.absent(), b.addr} { // nobody there, nobody answers
			x := a.point(nil)
			start := time.Now()
			ok(t, x.Connect(to, testQual, 100*time.Millisecond, nil))
			x.expect(EventTimedOut)
			if d := time.Since(start); d < 100*time.Millisecond || d > 2*time.Second {
				t.Errorf("%v: timed out after %v, want 100 ms", to, d)
			}
			x.still()
		}
		// The requester has given up, but the request can still be answered. The answer reaches no endpoint.
		y := b.point(nil)
		ok(t, b.request(t).Accept(y.EP, nil))
		y.expect(EventAcceptCompletionError)
		if y.State() != EPDisconnected {
			t.Errorf("state %v", y.State())
		}
	})
}

func TestLongestTimeout(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, timeout := range []time.Duration{math.MaxInt64, -1} {
			x, y := a.point(nil), b.point(nil)
			ok(t, x.Connect(b.addr, testQual, timeout, nil))
			ok(t, b.request(t).Accept(y.EP, nil))
			var ev Event
			if _, err := x.connect.Wait(timeout, 1, &ev); err != nil || ev.Number != EventEstablished {
				t.Errorf("timeout %v: %v, %v", timeout, ev.Number, err)
			}
		}
	})
}

func TestConnectArguments(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x := a.point(nil)
		none := must(a.ia.CreateEP(a.pz, EPConfig{}))(t)
		long := make([]byte, maxPrivateData+1)
		for _, tc := range []struct {
			name    string
			ep      *EP
			to      netip.Addr
			timeout time.Duration
			private []byte
			want    error
		}{
			{"no address", x.EP, netip.Addr{}, patience, nil, ErrInvalidParameter},
			{"timeout 0", x.EP, b.addr, 0, nil, ErrInvalidParameter},
			{"long private data", x.EP, b.addr, patience, long, ErrInvalidParameter},
			{"no connect dispatcher", none, b.addr, patience, nil, ErrInvalidState},
		} {
			wants(t, tc.name, tc.ep.Connect(tc.to, testQual, tc.timeout, tc.private), tc.want)
		}
		wants(t, "disconnect before connect", x.Disconnect(CloseAbrupt), ErrInvalidState)
		wants(t, "disconnect flags", x.Disconnect(2), ErrInvalidParameter)
		x.dial(b, nil)
		wants(t, "connect while connecting", x.Connect(b.addr, testQual, patience, nil), ErrInvalidState)
		wants(t, "reset while connecting", x.Reset(), ErrInvalidState)
		cr := b.request(t)
		y := b.point(nil)
		wants(t, "accept with long private data", cr.Accept(y.EP, long), ErrInvalidParameter)
		wants(t, "reject with long private data", cr.Reject(long), ErrInvalidParameter)
		wants(t, "accept with another adapter's endpoint", cr.Accept(x.EP, nil), ErrInvalidHandle)
		wants(t, "accept with nothing", cr.Accept(nil, nil), ErrInvalidParameter)
		ok(t, cr.Accept(y.EP, nil)) // a failed answer leaves the request
		wants(t, "accept again", cr.Accept(b.point(nil).EP, nil), ErrInvalidHandle)
		wants(t, "reject after accept", cr.Reject(nil), ErrInvalidHandle)
		if _, err := cr.Query(); err == nil {
			t.Error("a request that is over can be queried")
		}
		x.expect(EventEstablished)
		y.expect(EventEstablished)
		wants(t, "connect while connected", x.Connect(b.addr, testQual, patience, nil), ErrInvalidState)
		wants(t, "reset while connected", x.Reset(), ErrInvalidState)
		x2 := a.point(nil)
		x2.dial(b, nil)
		cr = b.request(t)
		wants(t, "accept with a connected endpoint", cr.Accept(y.EP, nil), ErrInvalidState)
		ok(t, cr.Reject(nil))
		x2.expect(EventPeerRejected)
		if _, err := b.ia.CreatePSP(testQual, b.cr, PSPConsumer); err == nil {
			t.Error("two service points on one qualifier")
		}
		proves(x, y)
	})
}

// Each side gets exactly one EventDisconnected, whichever side disconnects, gracefully or abruptly.
func TestDisconnect(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, x, y *point)
	}{
		{"abrupt", func(t *testing.T, x, y *point) { ok(t, x.Disconnect(CloseAbrupt)) }},
		{"graceful", func(t *testing.T, x, y *point) { ok(t, x.Disconnect(CloseGraceful)) }},
		{"by the passive side", func(t *testing.T, x, y *point) { ok(t, y.Disconnect(CloseAbrupt)) }},
		{"simultaneous", func(t *testing.T, x, y *point) { atOnce(t, x, y, CloseAbrupt) }},
		{"simultaneous graceful", func(t *testing.T, x, y *point) { atOnce(t, x, y, CloseGraceful) }},
		{"twice", func(t *testing.T, x, y *point) {
			ok(t, x.Disconnect(CloseAbrupt))
			ok(t, x.Disconnect(CloseAbrupt))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, n network) {
				a, b := newHosts(t, n, Options{})
				for range 10 {
					x, y := pair(a, b, nil)
					ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
					ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
					tc.do(t, x, y)
					for i, p := range []*point{x, y} {
						p.expect(EventDisconnected)
						if p.State() != EPDisconnected {
							t.Errorf("state %v", p.State())
						}
						p.done(p.recv, uint64(i+1), DTOReceive, DTOFlushed, 0)
						ok(t, p.Disconnect(CloseAbrupt)) // no event
						flushes(t, p)
					}
					expectNoEvent(t, x.connect, y.connect, x.recv, y.recv, x.request, y.request)
					ok(t, x.Reset())
					ok(t, y.Reset())
					join(x, y)
					proves(x, y)
					ok(t, x.Free())
					ok(t, y.Free())
				}
				settled(t, a, b)
			})
		})
	}
}

func atOnce(t *testing.T, x, y *point, how CloseFlags) {
	var wg sync.WaitGroup
	for _, p := range []*point{x, y} {
		wg.Go(func() {
			if err := p.Disconnect(how); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// flushes checks that posts on a disconnected endpoint succeed and complete as flushed.
func flushes(t *testing.T, p *point) {
	t.Helper()
	ok(t, p.PostRecv(p.seg(0, 8), 11, 0))
	ok(t, p.PostSend(p.seg(0, 8), 12, CompletionSuppress))
	ok(t, p.PostRDMAWrite(p.seg(0, 8), 13, RMRTriplet{1, 2, 8}, 0))
	ok(t, p.PostRDMARead(p.seg(0, 8), 14, RMRTriplet{1, 2, 8}, 0))
	p.done(p.recv, 11, DTOReceive, DTOFlushed, 0)
	p.done(p.request, 12, DTOSend, DTOFlushed, 0)
	p.done(p.request, 13, DTORDMAWrite, DTOFlushed, 0)
	p.done(p.request, 14, DTORDMARead, DTOFlushed, 0)
}

// settled waits until no engine has a connection.
func settled(t *testing.T, hosts ...*host) {
	t.Helper()
	eventually(t, "the end of every connection", func() bool {
		n := 0
		for _, h := range hosts {
			s, err := h.ia.Stats()
			ok(t, err)
			n += s.Connections
		}
		return n == 0
	})
}

// A graceful disconnect lets outstanding requests complete: here a send that has no receive yet.
func TestGracefulDisconnectDrains(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		ok(t, x.PostSend(x.seg(0, 100), 1, 0))
		ok(t, x.Disconnect(CloseGraceful))
		if x.State() != EPDisconnectPending {
			t.Errorf("state %v", x.State())
		}
		wants(t, "post while draining", x.PostSend(x.seg(0, 8), 2, 0), ErrInvalidState)
		ok(t, x.Disconnect(CloseGraceful)) // changes nothing
		x.still()
		ok(t, y.PostRecv(y.seg(0, 100), 3, 0))
		y.done(y.recv, 3, DTOReceive, DTOSuccess, 100)
		x.done(x.request, 1, DTOSend, DTOSuccess, 100)
		x.expect(EventDisconnected)
		y.expect(EventDisconnected)

		x, y = pair(a, b, nil) // and an abrupt one cuts it short
		ok(t, x.PostSend(x.seg(0, 100), 1, 0))
		ok(t, x.Disconnect(CloseGraceful))
		ok(t, x.Disconnect(CloseAbrupt))
		x.done(x.request, 1, DTOSend, DTOFlushed, 0)
		x.expect(EventDisconnected)
		y.expect(EventDisconnected)
	})
}

// An endpoint can be freed in any state; no event of it appears afterwards.
func TestFreeInAnyState(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		free := func(p *point, ending bool) {
			t.Helper()
			if p.State() != EPDisconnected {
				ok(t, p.PostRecv(p.seg(0, 8), 1, 0))
			}
			ok(t, p.Free())
			if ending { // events from before Free
				p.discard()
			}
			p.still()
			wants(t, "second free", p.Free(), ErrInvalidHandle)
			for _, e := range []*EVD{p.recv, p.request, p.connect} {
				ok(t, e.Free())
			}
			ok(t, p.lmr.Free())
		}
		freed := func(p *point) { t.Helper(); free(p, false) }
		freed(a.point(nil)) // unconnected

		x := a.point(nil) // connecting
		x.dial(b, nil)
		cr := b.request(t)
		freed(x)
		y := b.point(nil)
		ok(t, cr.Accept(y.EP, nil)) // accepted, and nobody takes it up: the peer ends it soon
		free(y, true)

		x, y = pair(a, b, nil) // connected
		ok(t, x.PostSend(x.seg(0, 8), 1, 0))
		freed(x)
		y.expect(EventDisconnected)
		freed(y) // disconnected
		settled(t, a, b)
	})
}
