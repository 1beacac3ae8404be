package dat

import (
	"errors"
	"fmt"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// Return is a DAT_RETURN without its class: a type in bits 29..16 and a subtype below. It is the
// error that calls of this package return or wrap; compare with errors.Is, which ignores the subtype
// when the target has none.
type Return uint32

// The types of DAT_RETURN, as errors. They are preallocated: returning one costs nothing.
var (
	ErrAbort                 error = Return(0x00010000)
	ErrConnQualInUse         error = Return(0x00020000)
	ErrInsufficientResources error = Return(0x00030000)
	ErrInternalError         error = Return(0x00040000)
	ErrInvalidHandle         error = Return(0x00050000)
	ErrInvalidParameter      error = Return(0x00060000)
	ErrInvalidState          error = Return(0x00070000)
	ErrLengthError           error = Return(0x00080000)
	ErrModelNotSupported     error = Return(0x00090000)
	ErrProviderNotFound      error = Return(0x000A0000)
	ErrPrivilegesViolation   error = Return(0x000B0000)
	ErrProtectionViolation   error = Return(0x000C0000)
	ErrQueueEmpty            error = Return(0x000D0000)
	ErrQueueFull             error = Return(0x000E0000)
	ErrTimeoutExpired        error = Return(0x000F0000)
	ErrInvalidAddress        error = Return(0x00120000)
	ErrInterruptedCall       error = Return(0x00130000)
	ErrConnQualUnavailable   error = Return(0x00140000)
)

var returnNames = map[Return]string{
	0x00010000: "DAT_ABORT", 0x00020000: "DAT_CONN_QUAL_IN_USE", 0x00030000: "DAT_INSUFFICIENT_RESOURCES",
	0x00040000: "DAT_INTERNAL_ERROR", 0x00050000: "DAT_INVALID_HANDLE", 0x00060000: "DAT_INVALID_PARAMETER",
	0x00070000: "DAT_INVALID_STATE", 0x00080000: "DAT_LENGTH_ERROR", 0x00090000: "DAT_MODEL_NOT_SUPPORTED",
	0x000A0000: "DAT_PROVIDER_NOT_FOUND", 0x000B0000: "DAT_PRIVILEGES_VIOLATION",
	0x000C0000: "DAT_PROTECTION_VIOLATION", 0x000D0000: "DAT_QUEUE_EMPTY", 0x000E0000: "DAT_QUEUE_FULL",
	0x000F0000: "DAT_TIMEOUT_EXPIRED", 0x00120000: "DAT_INVALID_ADDRESS", 0x00130000: "DAT_INTERRUPTED_CALL",
	0x00140000: "DAT_CONN_QUAL_UNAVAILABLE",
}

const typeMask = 0x3FFF0000

// Type is the return type without its subtype.
func (r Return) Type() Return { return r & typeMask }

// Error is the DAT name of the type.
func (r Return) Error() string {
	if name, ok := returnNames[r.Type()]; ok {
		return name
	}
	return fmt.Sprintf("DAT_RETURN(%#08x)", uint32(r))
}

// Is matches the same type, and any subtype of it where the target has none.
func (r Return) Is(target error) bool {
	t, ok := target.(Return)
	return ok && (r == t || r.Type() == t)
}

// status is the DAT error for an error of the protocol; it does not allocate for those that posting
// can meet.
func status(err error) error {
	if _, ok := err.(Return); ok {
		return err
	}
	switch err {
	case nil:
		return nil
	case wire.ErrQueueFull, wire.ErrTooManyConns, wire.ErrTooMany:
		return ErrInsufficientResources
	case wire.ErrState, wire.ErrPosted:
		return ErrInvalidState
	case wire.ErrBadKey, wire.ErrRights:
		return ErrPrivilegesViolation
	case wire.ErrZone:
		return ErrProtectionViolation
	case wire.ErrBounds, wire.ErrSegments, wire.ErrTooLong, wire.ErrPrivateData, wire.ErrNoReads:
		return ErrInvalidParameter
	case wire.ErrInUse:
		return ErrConnQualInUse
	case wire.ErrGone:
		return ErrInvalidHandle
	}
	switch {
	case errors.Is(err, link.ErrUnreachable):
		return fmt.Errorf("%w: %w", ErrInvalidAddress, err)
	case errors.Is(err, link.ErrTooManyPaths):
		return fmt.Errorf("%w: %w", ErrInsufficientResources, err)
	default:
		return fmt.Errorf("%w: %w", ErrInternalError, err)
	}
}

// fail is a DAT error with a text that says what is wrong and what to do.
func fail(r error, format string, args ...any) error {
	return fmt.Errorf("dat: %w: %s", r, fmt.Sprintf(format, args...))
}
