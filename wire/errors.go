package wire

import (
	"errors"
	"strconv"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Errors of calls. They are returned as they are, without wrapping, on the data path.
var (
	ErrQueueFull    = errors.New("wire: work queue is full")
	ErrState        = errors.New("wire: connection is not in a state for this")
	ErrBadKey       = errors.New("wire: no such memory region")
	ErrZone         = errors.New("wire: region belongs to another protection zone")
	ErrRights       = errors.New("wire: region lacks the right")
	ErrBounds       = errors.New("wire: range is not inside the region")
	ErrSegments     = errors.New("wire: too many segments")
	ErrTooLong      = errors.New("wire: operation is too long")
	ErrNoReads      = errors.New("wire: the ends of the connection allow no RDMA read or atomic")
	ErrPrivateData  = errors.New("wire: private data is too long")
	ErrInUse        = errors.New("wire: connection qualifier is in use")
	ErrTooManyConns = errors.New("wire: connection table is full")
	ErrTooMany      = errors.New("wire: region table is full")
	ErrPosted       = errors.New("wire: receives are posted that would not fit")
	ErrGone         = errors.New("wire: connection request is gone")
)

// Status is how a work request ended. The numbers are those of DAT_DTO_COMPLETION_STATUS.
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

// BreakReason says why a connection broke, and which side found out. Zero is no reason.
type BreakReason uint8

// byPeer means that the peer closed the connection.
const byPeer BreakReason = 0x80

var breakReasons = [...]string{
	proto.ReasonAccess:   "remote access refused: key, range, right or zone is wrong",
	proto.ReasonLength:   "a message was longer than its receive",
	proto.ReasonNotReady: "a message came without a receive",
	proto.ReasonProtocol: "a packet made no sense",
	proto.ReasonTimeout:  "the other side was silent too long",
	proto.ReasonLocal:    "an operation failed on the closing side",
}

// String is a sentence; empty for no reason.
func (r BreakReason) String() string {
	why := r &^ byPeer
	switch {
	case r == 0:
		return ""
	case int(why) >= len(breakReasons) || breakReasons[why] == "":
		return "reason " + strconv.Itoa(int(why))
	case r&byPeer != 0:
		return "closed by the peer: " + breakReasons[why]
	default:
		return breakReasons[why]
	}
}
