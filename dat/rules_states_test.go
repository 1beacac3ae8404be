package dat

import (
	"fmt"
	"testing"
	"time"
)

// Qualifiers of host a in the rules for states.
const (
	rspQual      ConnQual = 0x5e1 // of the endpoint's reserved service point
	providerQual ConnQual = 0x5e2 // of a service point for which the provider makes endpoints
)

// epGone is the state of an endpoint that was freed.
const epGone EPState = 99

// stage has an endpoint of host a in a given state, and its peer, host b.
type stage struct {
	t       *testing.T
	a, b    *host
	other   *host // where other endpoints get connections from: b while it is up, otherwise a
	p, peer *point
	cr      *CR // the unanswered request: of the peer in a passive state, of the endpoint in the active state
	rsp     *RSP
}

// newStage brings an endpoint into a state.
func newStage(t *testing.T, n network, state EPState, o Options) *stage {
	t.Helper()
	s := &stage{t: t}
	s.a, s.b = newHost(t, n, 0, o), newHost(t, n, 1, o)
	s.other = s.b
	s.a.listen(testQual, 64)
	s.b.listen(testQual, 64)
	s.enter(state)
	return s
}

func (s *stage) enter(state EPState) {
	s.t.Helper()
	s.p, s.peer = s.a.point(nil), s.b.point(nil)
	switch state {
	case EPUnconnected, epGone:
	case EPReserved:
		s.reserve()
	case EPPassiveConnectionPending:
		s.reserve()
		s.ask(rspQual)
	case EPTentativeConnectionPending:
		s.useTentativeEP()
	case EPActiveConnectionPending:
		ok(s.t, s.p.Connect(s.b.addr, testQual, patience, nil))
		s.cr = s.b.request(s.t)
	case EPCompletionPending:
		s.ask(testQual)
		s.giveUp()
		ok(s.t, s.b.ia.Close()) // a host that is up would answer Accept with Reset
		s.other = s.a
		ok(s.t, s.cr.Accept(s.p.EP, nil))
		s.t.Cleanup(func() { _ = s.a.ia.Close() }) // closes host a before host b, which confirms the end
	case EPConnected:
		join(s.p, s.peer)
	case EPDisconnectPending:
		join(s.p, s.peer)
		ok(s.t, s.p.PostSend(s.p.seg(0, 8), 77, 0)) // the peer has no receive
		ok(s.t, s.p.Disconnect(CloseGraceful))
	case EPDisconnected:
		join(s.p, s.peer)
		ok(s.t, s.p.Disconnect(CloseAbrupt))
		s.p.expect(EventDisconnected)
	}
	if got := s.p.State(); got != state {
		s.t.Fatalf("the endpoint is %v, want %v", got, state)
	}
}

// reserve makes a reserved service point with the endpoint.
func (s *stage) reserve() { s.rsp = must(s.a.ia.CreateRSP(rspQual, s.p.EP, s.a.cr))(s.t) }

// ask has the peer request a connection.
func (s *stage) ask(qual ConnQual) {
	s.t.Helper()
	ok(s.t, s.peer.Connect(s.a.addr, qual, patience, nil))
	s.cr = s.a.request(s.t)
}

// giveUp ends the peer's attempt to connect.
func (s *stage) giveUp() {
	s.t.Helper()
	ok(s.t, s.peer.Disconnect(CloseAbrupt))
	s.peer.expect(EventDisconnected)
}

// useTentativeEP replaces the endpoint of the stage by an endpoint that the provider creates for a connection request.
// It sets the zone and the dispatchers of the new endpoint.
func (s *stage) useTentativeEP() {
	s.t.Helper()
	ok(s.t, s.p.Free())
	must(s.a.ia.CreatePSP(providerQual, s.a.cr, PSPProvider))(s.t)
	s.ask(providerQual)
	s.p.EP = must(s.cr.Query())(s.t).LocalEP
	ok(s.t, s.p.Modify(epHandles, &EPParam{PZ: s.a.pz, RecvEVD: s.p.recv, RequestEVD: s.p.request, ConnectEVD: s.p.connect}))
}

// newPair returns a second pair of endpoints, connected to each other.
func (s *stage) newPair() (x, y *point) {
	s.t.Helper()
	return pair(s.a, s.other, nil)
}

// checkState checks the state of the endpoint, with each call that returns the state.
func (s *stage) checkState(want EPState) {
	s.t.Helper()
	if want == epGone {
		_, _, _, err := s.p.Status()
		wants(s.t, "an endpoint that is gone", err, ErrInvalidHandle)
		return
	}
	status, _, _, err := s.p.Status()
	ok(s.t, err)
	query := must(s.p.Query())(s.t).State
	if s.p.State() != want || status != want || query != want {
		s.t.Errorf("state %v, status %v, query %v; want %v", s.p.State(), status, query, want)
	}
}

var allStates = []EPState{EPUnconnected, EPReserved, EPPassiveConnectionPending, EPTentativeConnectionPending,
	EPActiveConnectionPending, EPCompletionPending, EPConnected, EPDisconnectPending, EPDisconnected}

// stateMap describes a call that is legal only in some states. The keys are these states; the values are the states
// after the call.
type stateMap map[EPState]EPState

// unchanged returns such a map for a call that does not change the state.
func unchanged(all ...EPState) stateMap {
	m := stateMap{}
	for _, s := range all {
		m[s] = s
	}
	return m
}

// stateCalls has the state machine as a table, with one row for each call. The keys of statesAfter are the states in
// which the call is legal; the values are the states after the call. In any other state, the call returns
// ErrInvalidState and changes nothing.
var stateCalls = []struct {
	name        string
	call        func(s *stage) error
	statesAfter stateMap
	event       EventNumber           // the event that reports a change of the state
	flush       func(s *stage) []*EVD // dispatchers that get a flushed completion in EPDisconnected
}{
	{"Connect", func(s *stage) error { return s.p.Connect(s.b.addr, testQual, patience, nil) },
		stateMap{EPUnconnected: EPActiveConnectionPending}, 0, nil},
	{"DupConnect", func(s *stage) error {
		x, _ := s.newPair()
		return s.p.DupConnect(x.EP, ConnectConfig{Timeout: patience})
	}, stateMap{EPUnconnected: EPActiveConnectionPending}, 0, nil},
	{"DupConnect of another endpoint like this", func(s *stage) error {
		return s.a.point(nil).DupConnect(s.p.EP, ConnectConfig{Timeout: patience})
	}, unchanged(EPConnected), 0, nil},
	{"CreateRSP", func(s *stage) error {
		_, err := s.a.ia.CreateRSP(0x77, s.p.EP, s.a.cr)
		return err
	}, stateMap{EPUnconnected: EPReserved}, 0, nil},
	{"CR.Accept", func(s *stage) error {
		s.other.point(nil).dial(s.a, nil)
		return s.a.request(s.t).Accept(s.p.EP, nil)
	}, stateMap{EPUnconnected: EPConnected}, EventEstablished, nil},
	{"Disconnect, abrupt", func(s *stage) error { return s.p.Disconnect(CloseAbrupt) }, stateMap{
		EPActiveConnectionPending: EPDisconnected, EPCompletionPending: EPDisconnected, EPConnected: EPDisconnected,
		EPDisconnectPending: EPDisconnected, EPDisconnected: EPDisconnected}, EventDisconnected, nil},
	{"Disconnect, graceful", func(s *stage) error { return s.p.Disconnect(CloseGraceful) }, stateMap{
		EPActiveConnectionPending: EPDisconnected, EPCompletionPending: EPDisconnected, EPConnected: EPDisconnected,
		EPDisconnectPending: EPDisconnectPending, EPDisconnected: EPDisconnected}, EventDisconnected, nil},
	{"Reset", func(s *stage) error { return s.p.Reset() },
		stateMap{EPUnconnected: EPUnconnected, EPDisconnected: EPUnconnected}, 0, nil},
	{"Free", func(s *stage) error { return s.p.Free() }, stateMap{EPUnconnected: epGone, EPActiveConnectionPending: epGone,
		EPCompletionPending: epGone, EPConnected: epGone, EPDisconnectPending: epGone, EPDisconnected: epGone}, 0, nil},
	{"PostRecv", func(s *stage) error { return s.p.PostRecv(s.p.seg(0, 8), 1, 0) }, unchanged(allStates...), 0,
		func(s *stage) []*EVD { return []*EVD{s.p.recv} }},
	{"PostSend", func(s *stage) error { return s.p.PostSend(s.p.seg(0, 8), 1, 0) },
		unchanged(EPConnected, EPDisconnected), 0, func(s *stage) []*EVD { return []*EVD{s.p.request} }},
	{"PostRDMAWrite", func(s *stage) error {
		return s.p.PostRDMAWrite(s.p.seg(0, 8), 1, s.peer.lmr.Remote(0, 8), CompletionSuppress)
	}, unchanged(EPConnected, EPDisconnected), 0, func(s *stage) []*EVD { return []*EVD{s.p.request} }},
	{"PostRDMARead", func(s *stage) error {
		return s.p.PostRDMARead(s.p.seg(0, 8), 1, s.peer.lmr.Remote(0, 8), CompletionSuppress)
	}, unchanged(EPConnected, EPDisconnected), 0, func(s *stage) []*EVD { return []*EVD{s.p.request} }},
	{"Modify of the zone", func(s *stage) error {
		return s.p.Modify(EPFieldPZ, &EPParam{PZ: must(s.a.ia.CreatePZ())(s.t)})
	}, unchanged(EPUnconnected, EPTentativeConnectionPending), 0, nil},
	{"Modify of a dispatcher", func(s *stage) error {
		return s.p.Modify(EPFieldRecvEVD, &EPParam{RecvEVD: must(s.a.ia.CreateEVD(8, nil, EVDDTO))(s.t)})
	}, unchanged(EPUnconnected, EPReserved, EPPassiveConnectionPending, EPTentativeConnectionPending), 0, nil},
	{"Modify of an attribute", func(s *stage) error {
		return s.p.Modify(EPFieldMaxRequestDTOs, &EPParam{Attr: EPAttr{MaxRequestDTOs: 5}})
	}, unchanged(EPUnconnected, EPReserved, EPPassiveConnectionPending, EPTentativeConnectionPending), 0, nil},
	{"Modify of what the transport adds", func(s *stage) error { return s.p.Modify(EPFieldTransportAttr, &EPParam{}) },
		unchanged(EPUnconnected), 0, nil},
	{"Query", func(s *stage) error { _, err := s.p.Query(); return err }, unchanged(allStates...), 0, nil},
	{"Status", func(s *stage) error { _, _, _, err := s.p.Status(); return err }, unchanged(allStates...), 0, nil},
}

// stateEvents has the state changes that happen without a call on the endpoint.
var stateEvents = []struct {
	from EPState
	what string
	do   func(s *stage)
	next EPState
	want EventNumber
}{
	{EPReserved, "a request comes", func(s *stage) { s.ask(rspQual) }, EPPassiveConnectionPending, 0},
	{EPReserved, "RSP.Free", func(s *stage) { ok(s.t, s.rsp.Free()) }, EPUnconnected, 0},
	{EPPassiveConnectionPending, "CR.Accept", func(s *stage) { ok(s.t, s.cr.Accept(nil, nil)) }, EPConnected, EventEstablished},
	{EPPassiveConnectionPending, "CR.Reject", func(s *stage) { ok(s.t, s.cr.Reject(nil)) }, EPUnconnected, 0},
	{EPPassiveConnectionPending, "CR.Handoff", func(s *stage) { ok(s.t, s.cr.Handoff(testQual)) }, EPUnconnected, 0},
	{EPPassiveConnectionPending, "RSP.Free", func(s *stage) { ok(s.t, s.rsp.Free()) }, EPPassiveConnectionPending, 0},
	{EPPassiveConnectionPending, "the requester gives up", (*stage).giveUp, EPPassiveConnectionPending, 0},
	{EPTentativeConnectionPending, "CR.Accept", func(s *stage) { ok(s.t, s.cr.Accept(nil, nil)) }, EPConnected, EventEstablished},
	{EPTentativeConnectionPending, "CR.Reject", func(s *stage) { ok(s.t, s.cr.Reject(nil)) }, epGone, 0},
	{EPTentativeConnectionPending, "CR.Handoff", func(s *stage) { ok(s.t, s.cr.Handoff(testQual)) }, epGone, 0},
	{EPTentativeConnectionPending, "the requester gives up", (*stage).giveUp, EPTentativeConnectionPending, 0},
	{EPActiveConnectionPending, "the peer accepts", func(s *stage) { ok(s.t, s.cr.Accept(s.peer.EP, nil)) }, EPConnected, EventEstablished},
	{EPActiveConnectionPending, "the peer rejects", func(s *stage) { ok(s.t, s.cr.Reject(nil)) }, EPDisconnected, EventPeerRejected},
	{EPActiveConnectionPending, "the peer hands off to nobody", func(s *stage) { ok(s.t, s.cr.Handoff(0x99)) }, EPDisconnected, EventNonPeerRejected},
	{EPActiveConnectionPending, "the peer's adapter closes", func(s *stage) { ok(s.t, s.b.ia.Close()) }, EPDisconnected, EventNonPeerRejected},
	{EPCompletionPending, "the requester does not take it up", func(*stage) {}, EPDisconnected, EventAcceptCompletionError},
	{EPConnected, "the peer disconnects", func(s *stage) { ok(s.t, s.peer.Disconnect(CloseAbrupt)) }, EPDisconnected, EventDisconnected},
	{EPConnected, "the peer disconnects gracefully", func(s *stage) { ok(s.t, s.peer.Disconnect(CloseGraceful)) }, EPDisconnected, EventDisconnected},
	{EPConnected, "the peer frees its endpoint", func(s *stage) { ok(s.t, s.peer.Free()) }, EPDisconnected, EventDisconnected},
	{EPConnected, "the peer's adapter closes", func(s *stage) { ok(s.t, s.b.ia.Close()) }, EPDisconnected, EventDisconnected},
	{EPConnected, "a request fails", func(s *stage) {
		ok(s.t, s.p.PostRDMAWrite(s.p.seg(0, 8), 1, RMRTriplet{Length: 8}, 0))
		s.p.done(s.p.request, 1, DTORDMAWrite, DTORemoteAccess, 0)
	}, EPDisconnected, EventBroken},
	{EPConnected, "a request of the peer fails", func(s *stage) {
		ok(s.t, s.peer.PostRDMAWrite(s.peer.seg(0, 8), 1, RMRTriplet{Length: 8}, 0))
	}, EPDisconnected, EventBroken},
	{EPDisconnectPending, "the last request finishes", func(s *stage) {
		ok(s.t, s.peer.PostRecv(s.peer.seg(0, 8), 1, 0))
		s.p.done(s.p.request, 77, DTOSend, DTOSuccess, 8)
	}, EPDisconnected, EventDisconnected},
	{EPDisconnectPending, "a request fails", func(s *stage) {
		ok(s.t, s.peer.PostRecv(s.peer.seg(0, 4), 1, 0))
		s.p.done(s.p.request, 77, DTOSend, DTORemoteResponder, 0)
	}, EPDisconnected, EventBroken},
	{EPDisconnectPending, "the peer disconnects", func(s *stage) {
		ok(s.t, s.peer.Disconnect(CloseAbrupt))
		s.p.done(s.p.request, 77, DTOSend, DTOFlushed, 0)
	}, EPDisconnected, EventDisconnected},
	{EPDisconnectPending, "the peer frees its endpoint", func(s *stage) {
		ok(s.t, s.peer.Free())
		s.p.done(s.p.request, 77, DTOSend, DTOFlushed, 0)
	}, EPDisconnected, EventDisconnected},
	{EPDisconnected, "the peer frees its endpoint", func(s *stage) {
		s.peer.expect(EventDisconnected)
		ok(s.t, s.peer.Free())
	}, EPDisconnected, 0},
}

// stateRules returns a rule for each cell of the tables.
func stateRules() (all []rule) {
	for _, c := range stateCalls {
		for _, from := range allStates {
			next, legal := c.statesAfter[from]
			var want error
			if !legal {
				next, want = from, ErrInvalidState
			}
			name := fmt.Sprintf("%v: %s leads to %v", from, c.name, stateName(next))
			if want != nil {
				name = fmt.Sprintf("%v: %s is refused", from, c.name)
			}
			all = append(all, rule{name, func(t *testing.T, n network) {
				s := newStage(t, n, from, Options{})
				wants(t, c.name, c.call(s), want)
				if next != from && next != epGone && c.event != 0 {
					s.p.expect(c.event)
				}
				s.checkState(next)
				if from == EPDisconnected && want == nil && c.flush != nil {
					for _, e := range c.flush(s) {
						if ev := await(t, e, EventDTOCompletion); ev.Status != DTOFlushed || ev.Cookie != 1 {
							t.Errorf("completion %d: %v", ev.Cookie, ev.Status)
						}
					}
				}
				expectNoEvent(t, s.p.connect)
			}})
		}
	}
	for _, e := range stateEvents {
		all = append(all, rule{fmt.Sprintf("%v: %s, and it is %v", e.from, e.what, stateName(e.next)), func(t *testing.T, n network) {
			var o Options
			if e.from == EPCompletionPending {
				o.Limits = Limits{GiveUp: 100 * time.Millisecond}
			}
			s := newStage(t, n, e.from, o)
			e.do(s)
			if e.want != 0 {
				s.p.expect(e.want)
			}
			s.checkState(e.next)
			expectNoEvent(t, s.p.connect)
		}})
	}
	return append(all, rule{"ACTIVE_CONNECTION_PENDING: the time runs out, and it is DISCONNECTED", func(t *testing.T, n network) {
		s := newStage(t, n, EPUnconnected, Options{})
		ok(t, s.p.Connect(s.b.addr, testQual, 20*time.Millisecond, nil)) // the request may not even arrive
		s.p.expect(EventTimedOut)
		s.checkState(EPDisconnected)
		s.p.still()
	}})
}

func stateName(s EPState) string {
	if s == epGone {
		return "its end"
	}
	return s.String()
}
