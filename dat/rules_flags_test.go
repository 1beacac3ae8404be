package dat

import (
	"fmt"
	"testing"
)

// flagged returns attributes with completion flags.
func flagged(recv, request CompletionFlags) *EPAttr {
	a := DefaultEPAttr()
	a.RecvCompletionFlags, a.RequestCompletionFlags = recv, request
	return &a
}

// feeder makes an endpoint that feeds the given dispatchers, with completion flags.
func (h *host) feeder(recv, request, connect *EVD, recvFlags, requestFlags CompletionFlags) (*EP, error) {
	a := flagged(recvFlags, requestFlags)
	if recv == nil {
		a.MaxRecvDTOs = 0
	}
	if request == nil {
		a.MaxRequestDTOs = 0
	}
	return h.ia.CreateEP(h.pz, EPConfig{RecvEVD: recv, RequestEVD: request, ConnectEVD: connect, Attr: a})
}

// rebuild replaces the endpoint of a point by an endpoint with other dispatchers and attributes.
func (p *point) rebuild(recv, request *EVD, a *EPAttr) {
	t := p.host.t
	t.Helper()
	ok(t, p.Free())
	p.recv, p.request = recv, request
	p.EP = must(p.host.ia.CreateEP(p.host.pz, EPConfig{RecvEVD: recv, RequestEVD: request, ConnectEVD: p.connect, Attr: a}))(t)
}

// posts has every kind of post, with flags as a parameter.
func (p *point) posts(flags CompletionFlags) map[string]error {
	return map[string]error{
		"recv":  p.PostRecv(p.seg(0, 8), 1, flags),
		"send":  p.PostSend(nil, 1, flags),
		"write": p.PostRDMAWrite(nil, 1, RMRTriplet{}, flags),
		"read":  p.PostRDMARead(nil, 1, RMRTriplet{}, flags),
	}
}

// flagRules has the rules that say which flags are legal for which calls.
var flagRules = []rule{
	onHost("by default every completion counts toward the threshold", func(t *testing.T, _ *host) {
		a := DefaultEPAttr()
		if a.RecvCompletionFlags != 0x10 || a.RequestCompletionFlags != 0x10 {
			t.Errorf("got %#x, %#x", a.RecvCompletionFlags, a.RequestCompletionFlags)
		}
	}),
	onHost("attributes of receives are default, unsignalled, solicited or threshold", func(t *testing.T, h *host) {
		for flags := range CompletionFlags(0x40) {
			_, err := h.feeder(nil, nil, nil, flags, 0)
			switch flags {
			case CompletionDefault, CompletionUnsignalled, CompletionSolicitedWait, CompletionEVDThreshold:
				ok(t, err)
			default:
				wants(t, fmt.Sprintf("%#x", flags), err, ErrInvalidParameter)
			}
		}
	}),
	onHost("attributes of requests are default, unsignalled or threshold", func(t *testing.T, h *host) {
		for flags := range CompletionFlags(0x40) {
			_, err := h.feeder(nil, nil, nil, 0, flags)
			switch flags {
			case CompletionDefault, CompletionUnsignalled, CompletionEVDThreshold:
				ok(t, err)
			default:
				wants(t, fmt.Sprintf("%#x", flags), err, ErrInvalidParameter)
			}
		}
	}),
	onHost("the streams of a dispatcher have to agree", func(t *testing.T, h *host) {
		const none = CompletionFlags(0xff) // the direction does not feed the dispatcher
		for _, tc := range []struct {
			name                   string
			recv, request          CompletionFlags // of the first endpoint
			recv2, request2        CompletionFlags // of the second endpoint
			connect, service, fits bool
		}{
			{"threshold and default", CompletionEVDThreshold, 0, 0, CompletionEVDThreshold, true, true, true},
			{"all unsignalled", CompletionUnsignalled, CompletionUnsignalled, CompletionUnsignalled, CompletionUnsignalled, false, false, true},
			{"unsignalled requests alone", none, CompletionUnsignalled, none, CompletionUnsignalled, false, false, true},
			{"receives unsignalled, requests not", CompletionUnsignalled, 0, none, none, false, false, false},
			{"requests unsignalled, receives not", 0, CompletionUnsignalled, none, none, false, false, false},
			{"unsignalled after threshold", CompletionEVDThreshold, none, CompletionUnsignalled, none, false, false, false},
			{"default after unsignalled", CompletionUnsignalled, none, 0, none, false, false, false},
			{"unsignalled with connection events", none, none, CompletionUnsignalled, none, true, false, false},
			{"unsignalled with connection requests", none, none, none, CompletionUnsignalled, false, true, false},
			{"all receives solicited", CompletionSolicitedWait, none, CompletionSolicitedWait, none, false, false, true},
			{"solicited after threshold", CompletionEVDThreshold, none, CompletionSolicitedWait, none, false, false, false},
			{"solicited after unsignalled", CompletionUnsignalled, none, CompletionSolicitedWait, none, false, false, false},
			{"solicited with requests", CompletionSolicitedWait, none, none, 0, false, false, false},
			{"solicited with unsignalled requests", CompletionSolicitedWait, CompletionUnsignalled, none, none, false, false, false},
			{"solicited with connection events", none, none, CompletionSolicitedWait, none, true, false, false},
			{"solicited with connection requests", none, none, CompletionSolicitedWait, none, false, true, false},
		} {
			e := must(h.ia.CreateEVD(8, nil, EVDDTO|EVDConnection|EVDCR))(t)
			var psp *PSP
			if tc.service {
				psp = must(h.ia.CreatePSP(testQual, e, PSPConsumer))(t)
			}
			make1 := func(recv, request CompletionFlags) (*EP, error) {
				var of [3]*EVD
				if recv != none {
					of[0] = e
				}
				if request != none {
					of[1] = e
				}
				if tc.connect {
					of[2] = e
				}
				return h.feeder(of[0], of[1], of[2], recv%none, request%none)
			}
			first, err := make1(tc.recv, tc.request)
			var second *EP
			if err == nil {
				second, err = make1(tc.recv2, tc.request2)
			}
			if tc.fits {
				ok(t, err)
			} else {
				wants(t, tc.name, err, ErrInvalidParameter)
			}
			for _, ep := range []*EP{first, second} {
				if ep != nil {
					ok(t, ep.Free())
				}
			}
			if tc.service {
				ok(t, psp.Free())
			}
			ok(t, e.Free()) // a refused endpoint keeps no reference
		}
	}),
	onHost("a service point does not join unsignalled or solicited streams", func(t *testing.T, h *host) {
		for _, flags := range []CompletionFlags{CompletionUnsignalled, CompletionSolicitedWait} {
			e := must(h.ia.CreateEVD(8, nil, EVDDTO|EVDCR))(t)
			ep := must(h.feeder(e, nil, nil, flags, 0))(t)
			wants(t, "PSP", second(h.ia.CreatePSP(testQual, e, PSPConsumer)), ErrInvalidParameter)
			wants(t, "any PSP", second(h.ia.CreatePSPAny(e, PSPConsumer)), ErrInvalidParameter)
			wants(t, "RSP", second(h.ia.CreateRSP(testQual, nil, e)), ErrInvalidParameter)
			ok(t, ep.Free())
			psp := must(h.ia.CreatePSP(testQual, e, PSPConsumer))(t) // the endpoints above keep no reference
			wants(t, "second", second(h.ia.CreatePSP(testQual, e, PSPConsumer)), ErrConnQualInUse)
			ok(t, psp.Free())
			ok(t, e.Free())
		}
	}),
	onHost("the agreement ends with the last of the streams", func(t *testing.T, h *host) {
		e := must(h.ia.CreateEVD(8, nil, EVDDTO))(t)
		for range 2 {
			for _, flags := range []CompletionFlags{CompletionUnsignalled, CompletionSolicitedWait, CompletionEVDThreshold} {
				ok(t, must(h.feeder(e, nil, nil, flags, 0))(t).Free())
			}
		}
	}),
	{"an unsignalled post is invalid unless the attribute of its direction is unsignalled", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, attr := range []*EPAttr{nil, flagged(0, 0), flagged(CompletionSolicitedWait, 0), flagged(CompletionUnsignalled, 0), flagged(0, CompletionUnsignalled)} {
			x, _ := pair(a, b, attr)
			for name, err := range x.posts(CompletionUnsignalled) {
				legal := attr != nil && (name == "recv" && attr.RecvCompletionFlags == CompletionUnsignalled ||
					name != "recv" && attr.RequestCompletionFlags == CompletionUnsignalled)
				if !legal {
					wants(t, name, err, ErrInvalidParameter)
				} else if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			ok(t, x.EP.Free())
		}
	}},
	{"suppress and barrier fence are legal on requests, and invalid on receives, whatever the attribute", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, attr := range []*EPAttr{nil, flagged(CompletionUnsignalled, CompletionUnsignalled)} {
			x, _ := pair(a, b, attr)
			for _, flags := range []CompletionFlags{CompletionSuppress, CompletionBarrierFence, CompletionSuppress | CompletionBarrierFence} {
				for name, err := range x.posts(flags) {
					if name == "recv" {
						wants(t, name, err, ErrInvalidParameter)
					} else if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
		}
	}},
	{"solicited wait is legal on sends alone, in every configuration", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, attr := range []*EPAttr{nil, flagged(CompletionSolicitedWait, 0), flagged(CompletionUnsignalled, CompletionUnsignalled)} {
			x, _ := pair(a, b, attr)
			for name, err := range x.posts(CompletionSolicitedWait) {
				if name != "send" {
					wants(t, name, err, ErrInvalidParameter)
				} else if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}},
	{"threshold and flags that do not exist are invalid on posts", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, _ := pair(a, b, nil)
		for _, flags := range []CompletionFlags{CompletionEVDThreshold, 0x20, 0x40, 0x80, 0xff} {
			for name, err := range x.posts(flags) {
				wants(t, fmt.Sprintf("%s %#x", name, flags), err, ErrInvalidParameter)
			}
		}
		expectNoEvent(t, x.recv, x.request)
	}},
}
