package dat

import "github.com/datxdp/datxdp/wire"

// The life of an endpoint. Its state is that of its connection, and while the connection is idle it is
// who holds the endpoint. Here it is moved on:
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
// Who holds an endpoint moves it on; all else here runs with EP.mu held. From there on the connection
// leads, in package wire, and tells by events:
//
//	ACTIVE_...                 CONNECTED            EventEstablished
//	                           DISCONNECTED         EventPeerRejected, EventNonPeerRejected, EventTimedOut,
//	                                                EventUnreachable; EventDisconnected of Disconnect
//	COMPLETION_PENDING         CONNECTED            EventEstablished
//	                           DISCONNECTED         EventAcceptCompletionError; EventDisconnected of Disconnect
//	CONNECTED                  DISCONNECT_PENDING   graceful Disconnect with requests outstanding
//	CONNECTED, DISCONNECT_...  DISCONNECTED         EventDisconnected, EventBroken
//	DISCONNECTED               UNCONNECTED          Reset

// hold is who has an endpoint whose connection is idle; nil for nobody. Each is used once.
type hold struct {
	state EPState
	cr    *CR // the request that the endpoint is for; nil while RESERVED
}

var epStates = [...]EPState{
	wire.Idle:        EPUnconnected,
	wire.Connecting:  EPActiveConnectionPending,
	wire.Accepting:   EPCompletionPending,
	wire.Established: EPConnected,
	wire.Draining:    EPDisconnectPending,
	wire.Closed:      EPDisconnected,
}

// State is where the endpoint stands (dat_ep_get_status). When an event can be taken, the state is
// already the one that the event tells of.
func (ep *EP) State() EPState {
	h := ep.hold.Load() // first: it is let go after the connection has begun
	s := ep.conn.State()
	if s == wire.Idle && h != nil {
		return h.state
	}
	return epStates[s]
}

// reserve gives an unconnected endpoint to a reserved service point.
func (ep *EP) reserve() *hold {
	h := &hold{state: EPReserved}
	ep.hold.Store(h)
	return h
}

// arrive passes an endpoint from its service point to a request, or back if the request could not be
// delivered. Engines call it, with the service point locked.
func (ep *EP) arrive(h *hold) { ep.hold.Store(h) }

// release makes an endpoint that is held unconnected.
func (ep *EP) release() { ep.hold.Store(nil) }

// epCall is a call that the state of the endpoint decides about. The posts are not here: package wire
// decides about them with the work queue locked. A receive may be posted in every state, a request while
// CONNECTED; DISCONNECTED flushes both.
type epCall uint8

const (
	callConnect    epCall = iota // Connect, DupConnect
	callReserve                  // CreateRSP
	callAccept                   // CR.Accept with an endpoint of the consumer
	callAcceptHeld               // CR.Accept with the endpoint of the request
	callDup                      // DupConnect, of the endpoint that is duplicated
	callDisconnect
	callReset
	callFree
	callModifyPZ
	callModify
	callModifyTransport
)

// epStateSet is a set of states, a bit for each.
type epStateSet uint16

func states(all ...EPState) (set epStateSet) {
	for _, s := range all {
		set |= 1 << s
	}
	return set
}

// legal says in which states each call may be made.
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

// remoteDefined is where a remote address is defined.
var remoteDefined = states(EPPassiveConnectionPending, EPTentativeConnectionPending, EPActiveConnectionPending,
	EPCompletionPending, EPConnected, EPDisconnectPending)

func (s epStateSet) has(state EPState) bool { return s>>state&1 != 0 }

// may says whether the state allows a call.
func (ep *EP) may(c epCall) error {
	if s := ep.State(); !legal[c].has(s) {
		return fail(ErrInvalidState, "the endpoint is %v", s)
	}
	return nil
}
