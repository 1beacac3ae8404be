package dat

import "github.com/datxdp/datxdp/wire"

// EventNumber is the kind of an Event (DAT_EVENT_NUMBER).
type EventNumber uint32

// Event numbers; the values are those of uDAPL 2.0.
const (
	EventDTOCompletion         EventNumber = 0x00001
	EventRMRBindCompletion     EventNumber = 0x01001
	EventConnectionRequest     EventNumber = 0x02001
	EventEstablished           EventNumber = 0x04001
	EventPeerRejected          EventNumber = 0x04002
	EventNonPeerRejected       EventNumber = 0x04003
	EventAcceptCompletionError EventNumber = 0x04004
	EventDisconnected          EventNumber = 0x04005
	EventBroken                EventNumber = 0x04006
	EventTimedOut              EventNumber = 0x04007
	EventUnreachable           EventNumber = 0x04008
	EventAsyncEVDOverflow      EventNumber = 0x08001
	EventAsyncIACatastrophic   EventNumber = 0x08002
	EventSoftware              EventNumber = 0x10001
	// EventAsyncEPBroken reports a change of an endpoint. Event.Reason says which change. In spite of the event's name,
	// the change need not be an error.
	EventAsyncEPBroken EventNumber = 0x08003
	// EventAsyncProviderInternalError reports a change of an object of a type for which DAT has no asynchronous event,
	// such as a shared receive queue. Event.Source is the object, and Event.Reason says which change. The change need
	// not be an error.
	EventAsyncProviderInternalError EventNumber = 0x08005
)

// Values of Event.Reason in asynchronous events. The meaning of a number depends on the type of Event.Source. Each
// comment below begins with that type.
const (
	ReasonIACatastrophic       = 0 // IA: asynchronous errors were lost, because the asynchronous EVD was full
	ReasonIAEnded              = 1 // IA: the device stopped moving packets; IA.Err returns the reason
	ReasonEVDOverflow          = 0 // EVD: the dispatcher was full and lost events
	ReasonEPTransferToError    = 0 // EP: the endpoint takes no more receives of its shared receive queue
	ReasonSRQSoftHighWatermark = 2 // EP: the receives of the endpoint exceed the soft high watermark
	ReasonSRQLowWatermark      = 2 // SRQ: fewer receives are available than the low watermark
)

var eventNames = map[EventNumber]string{
	EventDTOCompletion:         "DAT_DTO_COMPLETION_EVENT",
	EventRMRBindCompletion:     "DAT_RMR_BIND_COMPLETION_EVENT",
	EventConnectionRequest:     "DAT_CONNECTION_REQUEST_EVENT",
	EventEstablished:           "DAT_CONNECTION_EVENT_ESTABLISHED",
	EventPeerRejected:          "DAT_CONNECTION_EVENT_PEER_REJECTED",
	EventNonPeerRejected:       "DAT_CONNECTION_EVENT_NON_PEER_REJECTED",
	EventAcceptCompletionError: "DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR",
	EventDisconnected:          "DAT_CONNECTION_EVENT_DISCONNECTED",
	EventBroken:                "DAT_CONNECTION_EVENT_BROKEN",
	EventTimedOut:              "DAT_CONNECTION_EVENT_TIMED_OUT",
	EventUnreachable:           "DAT_CONNECTION_EVENT_UNREACHABLE",
	EventAsyncEVDOverflow:      "DAT_ASYNC_ERROR_EVD_OVERFLOW",
	EventIBDTO:                 "DAT_IB_DTO_EVENT",
	EventAsyncIACatastrophic:   "DAT_ASYNC_ERROR_IA_CATASTROPHIC",
	EventSoftware:              "DAT_SOFTWARE_EVENT",

	EventAsyncEPBroken:              "DAT_ASYNC_ERROR_EP_BROKEN",
	EventAsyncProviderInternalError: "DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR",
}

// String returns the DAT name.
func (n EventNumber) String() string { return enumName(eventNames[n], "DAT_EVENT_NUMBER", n) }

// DTOStatus is the result of a data transfer operation (DAT_DTO_COMPLETION_STATUS).
type DTOStatus uint8

// Completion statuses; the values are those of uDAPL 2.0.
const (
	DTOSuccess          DTOStatus = 0
	DTOFlushed          DTOStatus = 1
	DTOLocalLength      DTOStatus = 2
	DTOLocalProtection  DTOStatus = 4
	DTOBadResponse      DTOStatus = 5
	DTORemoteAccess     DTOStatus = 6
	DTORemoteResponder  DTOStatus = 7
	DTOTransport        DTOStatus = 8
	DTOReceiverNotReady DTOStatus = 9
	DTORMRFailed        DTOStatus = 11
	numDTOStatus                  = DTORMRFailed + 1
)

var dtoNames = [numDTOStatus]string{"DAT_DTO_SUCCESS", "DAT_DTO_ERR_FLUSHED", "DAT_DTO_ERR_LOCAL_LENGTH",
	"DAT_DTO_ERR_LOCAL_EP", "DAT_DTO_ERR_LOCAL_PROTECTION", "DAT_DTO_ERR_BAD_RESPONSE",
	"DAT_DTO_ERR_REMOTE_ACCESS", "DAT_DTO_ERR_REMOTE_RESPONDER", "DAT_DTO_ERR_TRANSPORT",
	"DAT_DTO_ERR_RECEIVER_NOT_READY", "DAT_DTO_ERR_PARTIAL_PACKET", "DAT_RMR_OPERATION_FAILED"}

// String returns the DAT name.
func (s DTOStatus) String() string {
	name := ""
	if s < numDTOStatus {
		name = dtoNames[s]
	}
	return enumName(name, "DAT_DTO_COMPLETION_STATUS", s)
}

// DTO is a kind of data transfer operation (DAT_DTOS).
type DTO uint8

// Kinds of data transfer operations; the values are those of uDAPL 2.0.
const (
	DTOSend      DTO = 0
	DTORDMAWrite DTO = 1
	DTORDMARead  DTO = 2
	DTOReceive   DTO = 3
	// DTOReceiveWithInvalidate is a receive whose message has invalidated an RMR of this side.
	DTOReceiveWithInvalidate DTO = 4
	DTOBind                  DTO = 5
)

// Event is an event of an EVD (DAT_EVENT). Dequeue and Wait fill in an Event of the caller. The field Number decides
// which of the other fields are used; unused fields are zero. Err says whether the event is an error.
//
// When a connection ends, every posted operation completes before the connection event. First the requests complete, in
// the order of their posts, and then the receives. Their status is DTOFlushed, with one exception: if an operation has
// failed and thereby ended the connection, the oldest request completes with the error. So when a program takes the
// connection event, all completions of the endpoint are queued in its dispatchers. After the program has dequeued these
// completions, the memory of the operations belongs to the program again.
type Event struct {
	Number EventNumber
	EVD    *EVD // the dispatcher of the event

	EP *EP // completions and connection events: the endpoint

	// Fields of completions, of operations and of binds.
	Cookie     uint64 // the cookie of the post
	Length     uint64 // transferred bytes; valid if Status is DTOSuccess
	Op         DTO
	Status     DTOStatus
	Ext        ExtType // EventIBDTO only
	Imm        uint32  // EventIBDTO with ExtRDMAWriteImmData only: the immediate data
	RMR        *RMR    // DTOBind only: the region
	RMRContext uint32  // DTOReceiveWithInvalidate only: the context that the peer has invalidated

	// Fields of connection events.
	PrivateData []byte      // EventEstablished, EventPeerRejected: private data of the peer's accept or reject
	BreakReason BreakReason // EventBroken, EventNonPeerRejected, EventAcceptCompletionError, EventTimedOut: the reason

	// Fields of EventConnectionRequest.
	CR       *CR
	PSP      *PSP // the service point at which the request arrived; nil if it is an RSP
	RSP      *RSP // the service point at which the request arrived; nil if it is a PSP
	ConnQual ConnQual

	// Fields of asynchronous events.
	Source any // the object that has changed: an *IA, *EVD, *EP or *SRQ
	Reason int // the change, such as ReasonIAEnded

	// Software is the field of EventSoftware: the value passed to PostSE.
	Software any
}

// BreakReason is the reason why a connection broke or was refused; 0 means no reason. If the peer closed the
// connection, a BreakReason r has the flag BreakByPeer set: r &^ BreakByPeer is the reason without the flag.
type BreakReason uint8

// Reasons of broken and refused connections.
const (
	BreakNoListener BreakReason = 2  // refused: no service point has the qualifier
	BreakBacklog    BreakReason = 3  // refused: the backlog of the service point is full
	BreakResources  BreakReason = 4  // refused: the peer has no room for another connection
	BreakVersion    BreakReason = 13 // refused: the two sides have no version of the wire protocol in common
	BreakOption     BreakReason = 14 // refused: one side requires an option that the other does not support
	BreakPort       BreakReason = 15 // refused: no process of the peer's host has the UDP port (ICMP port unreachable)
	BreakSecure     BreakReason = 16 // refused: the peer accepts secure connections only

	BreakAccess     BreakReason = 5  // remote access refused: wrong context, range, privilege or zone
	BreakLength     BreakReason = 6  // a message was longer than its receive
	BreakNotReady   BreakReason = 7  // a message found no receive (receiver not ready)
	BreakProtocol   BreakReason = 8  // a packet violated the protocol
	BreakTimeout    BreakReason = 9  // the other side was silent for too long
	BreakLocal      BreakReason = 10 // an operation failed on the side that closed the connection
	BreakMemory     BreakReason = 11 // registered memory of the side that closed the connection is inaccessible
	BreakUnfinished BreakReason = 12 // an incomplete message held a receive of an SRQ for too long (see SRQ)
	BreakKeyLimit   BreakReason = 17 // the key of a secure connection was used up
	// BreakHandshake: EventTimedOut, because the peer answers, but not to the key of this host.
	BreakHandshake BreakReason = 18
	// BreakDenied: the file of peers of the side that closed the connection does not permit it any more (IA.ReloadSecurity).
	BreakDenied BreakReason = 19
	// BreakEnded: the peer process has ended without Close, or has started again. Its kernel (ICMP port unreachable) or the
	// new process said so.
	BreakEnded BreakReason = 20
	// EventUnreachable has one of these reasons: the peer, or the router to it, does not answer ARP or neighbour discovery,
	// or a router or firewall refuses the packets (ICMP destination unreachable).
	BreakNoHost     BreakReason = 21 // the peer is unreachable
	BreakNoNet      BreakReason = 22 // there is no route to its network
	BreakProhibited BreakReason = 23 // packets to it are prohibited (IPv6)

	BreakUnknown BreakReason = 0x7f // the peer sent a reason that this version does not know

	BreakByPeer BreakReason = 0x80 // flag: the peer closed the connection
)

// String returns a sentence, or "" for no reason.
func (r BreakReason) String() string { return wire.BreakReason(r).String() }

var connectionEvents = [...]EventNumber{
	wire.KindEstablished:  EventEstablished,
	wire.KindPeerRejected: EventPeerRejected,
	wire.KindRefused:      EventNonPeerRejected,
	wire.KindAcceptFailed: EventAcceptCompletionError,
	wire.KindDisconnected: EventDisconnected,
	wire.KindBroken:       EventBroken,
	wire.KindTimedOut:     EventTimedOut,
	wire.KindUnreachable:  EventUnreachable,
}

// fill converts c, a completion in a queue of evd, to ev.
func (ev *Event) fill(evd *EVD, c *wire.Completion) {
	*ev = Event{EVD: evd, EP: c.Conn.User.(*EP)}
	if c.Kind == wire.KindWork {
		ev.Number = EventDTOCompletion
		ev.Cookie, ev.Length = c.Cookie, uint64(c.Length)
		ev.Op, ev.Status = DTO(c.Op), DTOStatus(c.Status)
		switch {
		case c.Op >= wire.OpWriteImm:
			ev.extend(c)
		case c.Op == wire.OpRecvInvalidate:
			ev.RMRContext = c.Data
		case c.Op == wire.OpBind:
			ev.Number, ev.RMR = EventRMRBindCompletion, c.Window.User.(*RMR)
		}
		return
	}
	ev.Number = connectionEvents[c.Kind]
	ev.BreakReason = BreakReason(c.Data)
	if c.Kind == wire.KindEstablished || c.Kind == wire.KindPeerRejected {
		ev.PrivateData = truncatePrivate(c.Conn.PeerPrivate())
	}
}
