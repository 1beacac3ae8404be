package wire

import (
	"errors"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Errors of calls. The data path returns them without wrapping, so it does not allocate.
var (
	ErrQueueFull    = errors.New("wire: work queue is full")
	ErrState        = errors.New("wire: the state of the connection does not allow this")
	ErrBadKey       = errors.New("wire: no memory region has this key")
	ErrZone         = errors.New("wire: the region belongs to another protection zone")
	ErrRights       = errors.New("wire: region lacks the right")
	ErrBounds       = errors.New("wire: range is not inside the region")
	ErrSegments     = errors.New("wire: too many segments")
	ErrTooLong      = errors.New("wire: operation is too long")
	ErrNoReads      = errors.New("wire: this connection allows no RDMA reads or atomics")
	ErrPrivateData  = errors.New("wire: private data is too long")
	ErrInUse        = errors.New("wire: connection qualifier is in use")
	ErrTooManyConns = errors.New("wire: connection table is full")
	ErrTooMany      = errors.New("wire: region table is full")
	ErrPosted       = errors.New("wire: receives are posted that would not fit")
	ErrGone         = errors.New("wire: connection request is gone")
	ErrSecure       = errors.New("wire: secure mode needs a Requester, and plaintext mode must not have one")
	ErrDenied       = errors.New("wire: the policy denies the handshake")
	ErrHeld         = errors.New("wire: completions of the connection wait for another engine")
)

// Status is the result of a work request. The numbers are those of DAT_DTO_COMPLETION_STATUS.
type Status uint8

// Completion statuses.
const (
	StatusSuccess         Status = 0
	StatusFlushed         Status = 1
	StatusLocalLength     Status = 2
	StatusLocalProtection Status = 4
	StatusBadResponse     Status = 5
	StatusRemoteAccess    Status = 6
	StatusRemoteResponder Status = 7
	StatusTransport       Status = 8
	StatusNotReady        Status = 9
	StatusBindFailed      Status = 11
)

// BreakReason says why a connection broke or was refused. The flag BreakByPeer is set if the peer has closed the
// connection. Zero means no reason.
type BreakReason uint8

// Reasons.
const (
	BreakNoListener = BreakReason(proto.ReasonNoListener) // refused: the qualifier has no service
	BreakBacklog    = BreakReason(proto.ReasonBacklog)    // refused: the backlog of the service is full
	BreakResources  = BreakReason(proto.ReasonResources)  // refused: no connection place left for this address

	BreakAccess   = BreakReason(proto.ReasonAccess)   // remote access denied: wrong key, range, right or zone
	BreakLength   = BreakReason(proto.ReasonLength)   // a message was longer than its receive
	BreakNotReady = BreakReason(proto.ReasonNotReady) // a message found no receive
	BreakProtocol = BreakReason(proto.ReasonProtocol) // a packet violated the protocol
	BreakTimeout  = BreakReason(proto.ReasonTimeout)  // the other side was silent, or did not go on, for too long
	BreakLocal    = BreakReason(proto.ReasonLocal)    // an operation failed on the side that closed
	BreakMemory   = BreakReason(proto.ReasonMemory)   // registered memory of the side that closed is inaccessible
	// BreakUnfinished: an unfinished message held a receive of a shared queue for too long.
	BreakUnfinished = BreakReason(proto.ReasonUnfinished)
	BreakVersion    = BreakReason(proto.ReasonVersion) // refused: the peer speaks other protocol versions only
	BreakOption     = BreakReason(proto.ReasonOption)  // refused: one end does not know a mandatory option of the other

	// BreakPort: refused, because the peer's kernel reports that the peer's UDP port is closed.
	BreakPort = BreakReason(proto.ReasonPort)
	// BreakSecure: refused, because the peer accepts secure connections only.
	BreakSecure = BreakReason(proto.ReasonSecure)
	// BreakKeyLimit: the key of a secure connection was used up before the peer took part in an update.
	BreakKeyLimit = BreakReason(proto.ReasonKeyLimit)
	// BreakHandshake: the attempt timed out. The peer has sent a Challenge, but has not answered a message 1.
	BreakHandshake = BreakReason(proto.ReasonHandshake)
	// BreakDenied: the policy of the side that closed does not permit the connection any more.
	BreakDenied = BreakReason(proto.ReasonDenied)
	// BreakEnded: the peer process has ended without Close, or has started again and does not know the connection.
	BreakEnded = BreakReason(proto.ReasonEnded)
	// BreakNoHost, BreakNoNet and BreakProhibited: the attempt ended with KindUnreachable, because a router reports this, or
	// the neighbour does not answer.
	BreakNoHost     = BreakReason(proto.ReasonNoHost)
	BreakNoNet      = BreakReason(proto.ReasonNoNet)
	BreakProhibited = BreakReason(proto.ReasonProhibited)

	BreakUnknown BreakReason = 0x7f // the peer's reason is not in this list

	// BreakByPeer is a flag: the peer has closed the connection. r &^ BreakByPeer is the reason without the flag.
	BreakByPeer BreakReason = 0x80
)

var breakReasons = [...]string{
	BreakNoListener: "no service listens on the connection qualifier",
	BreakBacklog:    "the backlog of the service is full",
	BreakResources:  "the peer has no room for another connection from this address",
	BreakAccess:     "remote access refused: key, range, right or zone is wrong",
	BreakLength:     "a message was longer than its receive",
	BreakNotReady:   "a message found no receive",
	BreakProtocol:   "a packet violated the protocol",
	BreakTimeout:    "the other side was silent, posted no receive or answered no read for too long",
	BreakLocal:      "an operation failed on the closing side",
	BreakMemory:     "registered memory of the closing side is unmapped, protected or beyond the end of its file",
	BreakUnfinished: "an unfinished message held a shared receive for too long",
	BreakVersion:    "the peer speaks another version of the wire protocol: run the same release at both ends",
	BreakOption:     "one end does not know a mandatory option of the other: run the same release at both ends, and give both a key or neither",
	BreakPort:       "no program has opened the UDP port at the peer: is the program running there, on this port?",
	BreakSecure:     "the peer accepts secure connections only: this end needs a key",
	BreakKeyLimit:   "the key of the connection was used up",
	BreakHandshake:  "the peer does not answer our key: has it the key that we expect, and its file of peers a line for ours? Or does somebody on the path inject Challenges?",
	BreakDenied:     "the closing side does not permit the connection any more: its file of peers has changed, or the time of the peer is over",
	BreakEnded:      "the peer process has ended, or has lost the connection in a restart",
	BreakNoHost:     "the peer or the router to it does not answer ARP or neighbour discovery, or a router or firewall reports that the peer is unreachable",
	BreakNoNet:      "a router reports that it has no route to the peer",
	BreakProhibited: "a router or firewall reports that packets to the peer are prohibited",
	BreakUnknown:    "an unknown reason",
}

// String describes the reason in a phrase. It returns "" for no reason.
func (r BreakReason) String() string {
	if r == 0 {
		return ""
	}
	why := breakReasons[BreakUnknown]
	if s := r &^ BreakByPeer; breakReasons[s] != "" {
		why = breakReasons[s]
	}
	if r&BreakByPeer != 0 {
		return "closed by the peer: " + why
	}
	return why
}

// givenByPeer converts the reason in a peer's packet. The reason may be any byte.
func givenByPeer(r proto.Reason) BreakReason {
	if r >= proto.Reason(BreakUnknown) || breakReasons[r] == "" {
		return BreakUnknown | BreakByPeer
	}
	return BreakReason(r) | BreakByPeer
}
