package dat

import "github.com/datxdp/datxdp/wire"

// The state machine of an endpoint. While the connection is idle, the hold decides the state: a service point or a
// connection request may hold the endpoint. Otherwise the state of the connection decides.
//
// The functions below move an endpoint whose connection is idle. They run with EP.mu held, except arrive and makeEP,
// which the owner of an engine calls:
//
//	from                       by         to                              because of
//	UNCONNECTED                reserve    RESERVED                        CreateRSP
//	RESERVED                   release    UNCONNECTED                     RSP.Free
//	RESERVED                   arrive     PASSIVE_CONNECTION_PENDING      a request for the service point
//	(new)                      makeEP     TENTATIVE_CONNECTION_PENDING    a request, provider to make the endpoint
//	PASSIVE_...                release    UNCONNECTED                     CR.Reject, CR.Handoff
//	TENTATIVE_...              end        (gone)                          CR.Reject, CR.Handoff
//	UNCONNECTED                take       ACTIVE_CONNECTION_PENDING       Connect, DupConnect
//	UNCONNECTED, PASSIVE_...,
//	TENTATIVE_...              take       COMPLETION_PENDING              CR.Accept
//
// Afterwards package wire changes the state of the connection, and reports each change with an event:
//
//	ACTIVE_...                 CONNECTED            EventEstablished
//	                           DISCONNECTED         EventPeerRejected, EventNonPeerRejected, EventTimedOut,
//	                                                EventUnreachable; EventDisconnected of Disconnect
//	COMPLETION_PENDING         CONNECTED            EventEstablished
//	                           DISCONNECTED         EventAcceptCompletionError; EventDisconnected of Disconnect
//	CONNECTED                  DISCONNECT_PENDING   graceful Disconnect with requests outstanding
//	CONNECTED, DISCONNECT_...  DISCONNECTED         EventDisconnected, EventBroken
//	DISCONNECTED               UNCONNECTED          Reset

// hold says what holds an endpoint whose connection is idle. A hold does not change: a new one replaces it.
type hold struct {
	state EPState
	cr    *CR // the request that the endpoint answers; nil while RESERVED
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
	h := ep.hold.Load() // before the state: take clears hold after the connection has left Idle
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

// arrive passes an endpoint from its service point to a request, or back if the request could not be delivered. The
// owner of an engine calls it, with the service point locked.
func (ep *EP) arrive(h *hold) { ep.hold.Store(h) }

// release ends the hold: the endpoint is unconnected.
func (ep *EP) release() { ep.hold.Store(nil) }

// epCall is a call that is legal only in some states of the endpoint. Posts are not in the list, because package wire
// checks them with the work queue locked. A receive may be posted in every state. A request may be posted in state
// CONNECTED or DISCONNECTED. A DISCONNECTED endpoint immediately completes both as flushed.
type epCall uint8

const (
	callConnect    epCall = iota // Connect, DupConnect
	callReserve                  // CreateRSP
	callAccept                   // CR.Accept with an endpoint of the consumer
	callAcceptHeld               // CR.Accept with the endpoint of the request
	callDup                      // the endpoint whose connection DupConnect copies
	callDisconnect
	callReset
	callFree
	callModifyPZ
	callModify
	callModifyTransport
)

// epStateSet is a set of states, one bit for each.
type epStateSet uint16

func states(all ...EPState) (set epStateSet) {
	for _, s := range all {
		set |= 1 << s
	}
	return set
}

// legal has the states in which each call is legal.
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
