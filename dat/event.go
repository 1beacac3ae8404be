package dat

import "github.com/datxdp/datxdp/wire"

// EventNumber says what an Event tells (DAT_EVENT_NUMBER).
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
	// EventAsyncEPBroken is any news of an endpoint; Event.Reason says which.
	EventAsyncEPBroken EventNumber = 0x08003
	// EventAsyncProviderInternalError is any news of what has no number of its own, such as a shared
	// receive queue: it need not be an error. Event.Source and Event.Reason say which.
	EventAsyncProviderInternalError EventNumber = 0x08005
)

// Reasons of asynchronous events: those of the kind of Event.Source.
const (
	ReasonIACatastrophic       = 0 // IA: errors go unheard, the asynchronous EVD is full
	ReasonIAEnded              = 1 // IA: its device moves packets no more; IA.Err says why
	ReasonEVDOverflow          = 0 // EVD: events were lost
	ReasonEPTransferToError    = 0 // EP: takes no more receives of its shared receive queue
	ReasonSRQSoftHighWatermark = 2 // EP: has consumed more receives than its soft high watermark
	ReasonSRQLowWatermark      = 2 // SRQ: fewer receives are available than its low watermark
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

// String is the DAT name.
func (n EventNumber) String() string { return enumName(eventNames[n], "DAT_EVENT_NUMBER", n) }

// DTOStatus is how a data transfer ended (DAT_DTO_COMPLETION_STATUS).
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

// String is the DAT name.
func (s DTOStatus) String() string {
	name := ""
	if s < numDTOStatus {
		name = dtoNames[s]
	}
	return enumName(name, "DAT_DTO_COMPLETION_STATUS", s)
}

// DTO is a kind of data transfer (DAT_DTOS).
type DTO uint8

// Data transfers; the values are those of uDAPL 2.0.
const (
	DTOSend      DTO = 0
	DTORDMAWrite DTO = 1
	DTORDMARead  DTO = 2
	DTOReceive   DTO = 3
	// DTOReceiveWithInvalidate is a receive whose message has made an RMR of this side invalid.
	DTOReceiveWithInvalidate DTO = 4
	DTOBind                  DTO = 5
)

// Event is what an EVD delivers (DAT_EVENT). Dequeue and Wait fill one that the caller owns; which
// fields count depends on Number.
type Event struct {
	Number EventNumber
	EVD    *EVD

	// Data transfers and binds: the endpoint, what was posted, how it ended, the bytes moved on success.
	// Connection events: EP alone, and the private data of the peer's accept or reject; BreakReason where there is one.
	EP          *EP
	Cookie      uint64
	Length      uint64
	Op          DTO
	Status      DTOStatus
	Ext         ExtType // EventIBDTO
	Imm         uint32  // EventIBDTO with ExtRDMAWriteImmData
	PrivateData []byte
	BreakReason BreakReason // EventBroken, EventNonPeerRejected, EventAcceptCompletionError; Reason is of asynchronous events

	// Binds: the region. Receives with invalidate: the context that is invalid now.
	RMR        *RMR
	RMRContext uint32

	// Connection requests.
	CR       *CR
	PSP      *PSP // that it came to
	RSP      *RSP // or this
	ConnQual ConnQual

	// Asynchronous events: whom they are about, an *IA, *EVD, *EP or *SRQ, and why.
	Source any
	Reason int

	// Software events: what was given to PostSE.
	Software any
}

// BreakReason says why a connection broke or was refused; 0 is no reason. BreakByPeer is set if the peer closed it:
// r &^ BreakByPeer is the reason alone.
type BreakReason uint8

// Reasons for which connections break.
const (
	BreakNoListener BreakReason = 2  // refused: no service point has the qualifier
	BreakBacklog    BreakReason = 3  // refused: the backlog of the service point is full
	BreakResources  BreakReason = 4  // refused: the peer has no room for another connection
	BreakVersion    BreakReason = 13 // refused: the peer speaks other versions of the wire protocol only
	BreakOption     BreakReason = 14 // refused: one end does not know an option that it has to understand
	BreakPort       BreakReason = 15 // refused: the peer's host says that its UDP port has no owner

	BreakAccess     BreakReason = 5    // remote access refused: context, range, right or zone was wrong
	BreakLength     BreakReason = 6    // a message was longer than its receive
	BreakNotReady   BreakReason = 7    // a message came without a receive
	BreakProtocol   BreakReason = 8    // a packet made no sense
	BreakTimeout    BreakReason = 9    // the other side was silent too long
	BreakLocal      BreakReason = 10   // an operation failed on the closing side
	BreakMemory     BreakReason = 11   // registered memory of the closing side cannot be accessed
	BreakUnfinished BreakReason = 12   // a message held a receive of an SRQ for too long while others waited for one
	BreakUnknown    BreakReason = 0x7f // the peer gave a reason that is none of these

	BreakByPeer BreakReason = 0x80 // flag: the peer closed the connection
)

// String is a sentence; "" for no reason.
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

// fill makes ev of a completion.
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
		ev.PrivateData = c.Conn.PeerPrivate()
	}
}
