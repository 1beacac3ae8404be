package wire

import (
	"errors"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Denial says why the handshake of a requester was refused. As an error it is the answer of a Responder or a Grant. The
// requester gets no answer and does not learn the reason, except for DeniedService, with which it sees BreakNoListener, and
// for a limit that will last (DeniedLimit), with which it sees BreakResources.
type Denial uint8

// Denials.
const (
	DeniedKey     Denial = iota // this host has no such key, or message 1 does not authenticate
	DeniedUnknown               // nobody has the requester's key
	DeniedExpired               // the time of the requester is over
	DeniedAddress               // the requester may not connect from its address
	DeniedService               // the requester may not connect to the service
	DeniedBusy                  // the Runner has no room for the computation
	DeniedLimit                 // the requester has reached a limit of its own
	NumDenials
)

var denialNames = [NumDenials]string{"key", "unknown", "expired", "address", "service", "busy", "limit"}

// String returns one word, the label in metrics.
func (d Denial) String() string {
	if d < NumDenials {
		return denialNames[d]
	}
	return "?"
}

// Error implements error.
func (d Denial) Error() string { return "wire: handshake denied: " + d.String() }

// Is reports whether target is ErrDenied.
func (d Denial) Is(target error) bool { return target == ErrDenied }

// reason returns the reason in the Reject to a requester that has proven its key.
func (d Denial) reason() proto.Reason {
	if d == DeniedLimit {
		return proto.ReasonResources
	}
	return proto.ReasonNoListener
}

// denialOf returns the reason in an error of a Responder.
func denialOf(err error) Denial {
	var d Denial
	if errors.As(err, &d) && d < NumDenials {
		return d
	}
	return DeniedKey
}
