package dat

import "github.com/datxdp/datxdp/wire"

// This file has the state machine of an endpoint. While the endpoint's wire connection is idle, EP.hold decides the
// state. EP.hold is nil unless a service point or a connection request holds the endpoint. If it is nil, the endpoint
// is UNCONNECTED; otherwise the state is hold.state. While the wire connection is not idle, the state of that
// connection decides.
//
// These functions change the state while the connection is idle. The owner of an engine calls arrive and makeEP
// without EP.mu. The caller of every other function holds EP.mu.
//
//	old state                      new state                      function   called by
//	UNCONNECTED                    RESERVED                       reserve    IA.CreateRSP
//	RESERVED                       UNCONNECTED                    release    RSP.Free
//	RESERVED                       PASSIVE_CONNECTION_PENDING     arrive     RSP.arrive
//	(the endpoint is created)      TENTATIVE_CONNECTION_PENDING   makeEP     PSP.arrive, RSP.arrive
//	PASSIVE_CONNECTION_PENDING     UNCONNECTED                    release    CR.Reject, CR.Handoff
//	TENTATIVE_CONNECTION_PENDING   (the endpoint is freed)        end        CR.Reject, CR.Handoff
//	UNCONNECTED                    ACTIVE_CONNECTION_PENDING      take       EP.Connect, EP.DupConnect
//	UNCONNECTED                    COMPLETION_PENDING             take       CR.Accept
//	PASSIVE_CONNECTION_PENDING     COMPLETION_PENDING             take       CR.Accept
//	TENTATIVE_CONNECTION_PENDING   COMPLETION_PENDING             take       CR.Accept
//
// After take, package wire changes the state of the connection:
//
//	old state                   new state            event, or call without an event
//	ACTIVE_CONNECTION_PENDING   CONNECTED            EventEstablished
//	ACTIVE_CONNECTION_PENDING   DISCONNECTED         EventPeerRejected, EventNonPeerRejected, EventTimedOut,
//	                                                 EventUnreachable; EventDisconnected after a call of Disconnect
//	COMPLETION_PENDING          CONNECTED            EventEstablished
//	COMPLETION_PENDING          DISCONNECTED         EventAcceptCompletionError; EventDisconnected after a call of
//	                                                 Disconnect
//	CONNECTED                   DISCONNECT_PENDING   call: graceful Disconnect while requests are outstanding
//	CONNECTED                   DISCONNECTED         EventDisconnected, EventBroken
//	DISCONNECT_PENDING          DISCONNECTED         EventDisconnected, EventBroken
//	DISCONNECTED                UNCONNECTED          call: Reset

// hold is the state of an endpoint that a service point or a connection request holds. A hold is never modified; a new
// hold replaces it.
type hold struct {
	state EPState
	cr    *CR // the connection request that holds the endpoint; nil in state RESERVED
}

var epStates = [...]EPState{
	wire.Idle:        EPUnconnected,
	wire.Connecting:  EPActiveConnectionPending,
	wire.Accepting:   EPCompletionPending,
	wire.Established: EPConnected,
	wire.Draining:    EPDisconnectPending,
	wire.Closed:      EPDisconnected,
}

// State returns the state of the endpoint (dat_ep_get_status). When an event reports a change of the state, State
// already returns the new state.
func (ep *EP) State() EPState {
	h := ep.hold.Load() // load hold first: take clears hold only after the connection has left the state Idle
	s := ep.conn.State()
	if s == wire.Idle && h != nil {
		return h.state
	}
	return epStates[s]
}

// reserve makes a reserved service point hold an unconnected endpoint.
func (ep *EP) reserve() *hold {
	h := &hold{state: EPReserved}
	ep.hold.Store(h)
	return h
}

// arrive replaces the hold of a reserved endpoint by h. When a connection request arrives, h is the request's hold. If
// the request cannot be delivered, another call of arrive restores the hold of the service point. The owner of an
// engine calls arrive, with RSP.mu held.
func (ep *EP) arrive(h *hold) { ep.hold.Store(h) }

// release ends the hold: the endpoint is unconnected.
func (ep *EP) release() { ep.hold.Store(nil) }

// epCall is a call that is legal only in some states of the endpoint. It does not include posts, because package wire
// checks their state with the work queue locked: receives may be posted in every state, requests in CONNECTED and
// DISCONNECTED. Work posted in DISCONNECTED completes immediately, as flushed.
type epCall uint8

const (
	callConnect    epCall = iota // Connect, DupConnect
	callReserve                  // CreateRSP
	callAccept                   // CR.Accept of an endpoint that the consumer passes
	callAcceptHeld               // CR.Accept of the endpoint that the connection request holds
	callDup                      // DupConnect, for its parameter dup
	callDisconnect
	callReset
	callFree
	callModifyPZ
	callModify
	callModifyTransport
)

// epStateSet is a set of states: bit 1<<s is set if state s is in the set.
type epStateSet uint16

func states(all ...EPState) (set epStateSet) {
	for _, s := range all {
		set |= 1 << s
	}
	return set
}

// legal has, for each call, the states in which the call is legal.
var legal = [...]epStateSet{
	callConnect:    states(EPUnconnected),
	callReserve:    states(EPUnconnected),
	callAccept:     states(EPUnconnected),
	callAcceptHeld: states(EPPassiveConnectionPending, EPTentativeConnectionPending),
	callDup:        states(EPConnected),
	callDisconnect: states(EPActiveConnectionPending, EPCompletionPending, EPConnected, EPDisconnectPending, EPDisconnected),
	callReset:      states(EPUnconnected, EPDisconnected),
	callFree: states(EPUnconnected, EPActiveConnectionPending, EPCompletionPending, EPConnected,
		EPDisconnectPending, EPDisconnected),
	callModifyPZ:        states(EPUnconnected, EPTentativeConnectionPending),
	callModify:          states(EPUnconnected, EPReserved, EPPassiveConnectionPending, EPTentativeConnectionPending),
	callModifyTransport: states(EPUnconnected),
}

// remoteDefined has the states in which the endpoint has a remote address.
var remoteDefined = states(EPPassiveConnectionPending, EPTentativeConnectionPending, EPActiveConnectionPending,
	EPCompletionPending, EPConnected, EPDisconnectPending)

func (s epStateSet) has(state EPState) bool { return s>>state&1 != 0 }

// may returns ErrInvalidState if the call is not legal in the current state.
func (ep *EP) may(c epCall) error {
	if s := ep.State(); !legal[c].has(s) {
		return fail(ErrInvalidState, "the endpoint is %v", s)
	}
	return nil
}
