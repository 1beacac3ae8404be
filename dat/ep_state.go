package dat

import "github.com/datxdp/datxdp/wire"

// This file has the state machine of an endpoint. Each endpoint has a connection of package wire. While that connection
// is not idle, the state of the connection decides the state of the endpoint.
//
// While the connection is idle, a reserved service point (RSP) may hold the endpoint until a connection request arrives
// for this service point. A connection request may hold the endpoint until the consumer answers the request. The field
// EP.holder says which of the two holds the endpoint, and has the state of the endpoint. If neither holds the endpoint,
// EP.holder is nil and the endpoint is UNCONNECTED.
//
// The functions in the next table change the state while the connection is idle. The owner of an engine calls setHolder
// and makeEP without EP.mu. The caller of every other function holds EP.mu.
//
//	old state                      new state                      function          called by
//	UNCONNECTED                    RESERVED                       holdForRSP        IA.CreateRSP
//	RESERVED                       UNCONNECTED                    clearHolder       RSP.Free
//	RESERVED                       PASSIVE_CONNECTION_PENDING     setHolder         RSP.deliver
//	(the endpoint is created)      TENTATIVE_CONNECTION_PENDING   makeEP            PSP.deliver, RSP.deliver
//	PASSIVE_CONNECTION_PENDING     UNCONNECTED                    clearHolder       CR.Reject, CR.Handoff
//	TENTATIVE_CONNECTION_PENDING   (the endpoint is freed)        freeConn          CR.Reject, CR.Handoff
//	UNCONNECTED                    ACTIVE_CONNECTION_PENDING      startConnection   EP.Connect, EP.DupConnect
//	UNCONNECTED                    COMPLETION_PENDING             startConnection   CR.Accept
//	PASSIVE_CONNECTION_PENDING     COMPLETION_PENDING             startConnection   CR.Accept
//	TENTATIVE_CONNECTION_PENDING   COMPLETION_PENDING             startConnection   CR.Accept
//
// After startConnection, package wire changes the state of the connection:
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

// epHolder says what holds an endpoint: a reserved service point or a connection request. It has the state of the
// endpoint. A value of this type is never modified. When the holder changes, EP.holder gets a new value.
type epHolder struct {
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

// State returns the state of the endpoint (dat_ep_get_status). When a consumer takes an event that reports a change of
// the state, State already returns the new state.
func (ep *EP) State() EPState {
	h := ep.holder.Load() // before conn.State: startConnection clears holder after the connection has left the state Idle
	s := ep.conn.State()
	if s == wire.Idle && h != nil {
		return h.state
	}
	return epStates[s]
}

// holdForRSP makes a reserved service point hold an unconnected endpoint.
func (ep *EP) holdForRSP() *epHolder {
	h := &epHolder{state: EPReserved}
	ep.holder.Store(h)
	return h
}

// setHolder changes the holder of the endpoint. It is called when a connection request arrives for the reserved service
// point that holds the endpoint: from then on, the request holds the endpoint. If the request cannot be delivered to
// the consumer, a second call gives the endpoint back to the service point. The owner of an engine calls setHolder,
// with RSP.mu held.
func (ep *EP) setHolder(h *epHolder) { ep.holder.Store(h) }

// clearHolder is called when nothing holds the endpoint any longer: the endpoint is unconnected.
func (ep *EP) clearHolder() { ep.holder.Store(nil) }

// epCall is a call that is legal only in some states of the endpoint. The posts have no epCall, because package wire
// checks the state for them while it has the work queue locked. Receives may be posted in every state; requests may be
// posted in CONNECTED and DISCONNECTED. A receive or request that is posted in DISCONNECTED completes immediately, as
// flushed.
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

// legalStates has, for each call, the states in which the call is legal.
var legalStates = [...]epStateSet{
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
	if s := ep.State(); !legalStates[c].has(s) {
		return fail(ErrInvalidState, "the endpoint is %v", s)
	}
	return nil
}
