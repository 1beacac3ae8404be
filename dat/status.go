package dat

import (
	"errors"
	"fmt"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// Return is a DAT_RETURN without its class (bits 31 and 30, which say whether it is an error or a warning). The type is
// in bits 29 to 16, the subtype in bits 15 to 0. The errors of this package are Returns, or wrap a Return. Compare them
// with errors.Is, which ignores the subtype if the target has none.
type Return uint32

// Success means that a call succeeded. As an error it is nil.
const Success Return = 0

// The types of DAT_RETURN, as errors. They are preallocated, so that returning one allocates nothing.
var (
	ErrAbort                     error = Return(0x00010000)
	ErrConnQualInUse             error = Return(0x00020000)
	ErrInsufficientResources     error = Return(0x00030000)
	ErrInternalError             error = Return(0x00040000)
	ErrInvalidHandle             error = Return(0x00050000)
	ErrInvalidParameter          error = Return(0x00060000)
	ErrInvalidState              error = Return(0x00070000)
	ErrLengthError               error = Return(0x00080000)
	ErrModelNotSupported         error = Return(0x00090000)
	ErrProviderNotFound          error = Return(0x000A0000)
	ErrPrivilegesViolation       error = Return(0x000B0000)
	ErrProtectionViolation       error = Return(0x000C0000)
	ErrQueueEmpty                error = Return(0x000D0000)
	ErrQueueFull                 error = Return(0x000E0000)
	ErrTimeoutExpired            error = Return(0x000F0000)
	ErrProviderAlreadyRegistered error = Return(0x00100000)
	ErrProviderInUse             error = Return(0x00110000)
	ErrInvalidAddress            error = Return(0x00120000)
	ErrInterruptedCall           error = Return(0x00130000)
	ErrConnQualUnavailable       error = Return(0x00140000)
	ErrReservedLMR               error = Return(0x00150000) // from the kernel's DAT; never returned
	ErrPortInUse                 error = Return(0x00160000)
	ErrCommNotSupported          error = Return(0x00170000)
	ErrNotImplemented            error = Return(0x3FFF0000)
)

// Errors with a subtype, preallocated for calls on the data path.
var (
	errHandleIA  = with(ErrInvalidHandle, SubInvalidHandleIA)
	errHandleEP  = with(ErrInvalidHandle, SubInvalidHandleEP)
	errHandleLMR = with(ErrInvalidHandle, SubInvalidHandleLMR)
	errHandlePZ  = with(ErrInvalidHandle, SubInvalidHandlePZ)
	errHandlePSP = with(ErrInvalidHandle, SubInvalidHandlePSP)
	errHandleCR  = with(ErrInvalidHandle, SubInvalidHandleCR)
	errHandleRMR = with(ErrInvalidHandle, SubInvalidHandleRMR)
	errHandleRSP = with(ErrInvalidHandle, SubInvalidHandleRSP)
	errHandleCNO = with(ErrInvalidHandle, SubInvalidHandleCNO)
	errHandleSRQ = with(ErrInvalidHandle, SubInvalidHandleSRQ)
	errName      = with(ErrProviderNotFound, SubNameNotRegistered)
	errArg1      = with(ErrInvalidParameter, SubInvalidArg1)
	errArg2      = with(ErrInvalidParameter, SubInvalidArg2)
	errArg3      = with(ErrInvalidParameter, SubInvalidArg3)
	errArg4      = with(ErrInvalidParameter, SubInvalidArg4)
	errArg5      = with(ErrInvalidParameter, SubInvalidArg5)
	errArg6      = with(ErrInvalidParameter, SubInvalidArg6)
	errArg7      = with(ErrInvalidParameter, SubInvalidArg7)
	errArg8      = with(ErrInvalidParameter, SubInvalidArg8)
	errMemory    = with(ErrInsufficientResources, SubResourceMemory)
	errTEP       = with(ErrInsufficientResources, SubResourceTEP)
	errRegions   = with(ErrInsufficientResources, SubResourceMemoryRegion)
)

// refusal is a DAT error with a text. All refusals are made when the program starts, so that a post does not allocate.
type refusal struct {
	code   Return
	reason string
}

func refuse(code error, reason string) error { return &refusal{code.(Return), reason} }

func (r *refusal) Error() string { return "dat: " + r.code.Error() + ": " + r.reason }
func (r *refusal) Unwrap() error { return r.code }

// The errors of posts.
var (
	errFull     = refuse(errMemory, "the work queue is full: MaxRecvDTOs or MaxRequestDTOs operations are outstanding")
	errContext  = refuse(ErrPrivilegesViolation, "no memory region has the LMR context of a segment")
	errRights   = refuse(ErrPrivilegesViolation, "the memory region of a segment lacks the privilege")
	errZone     = refuse(ErrProtectionViolation, "the memory region of a segment is of another protection zone")
	errSegments = refuse(errArg2, "more segments than the endpoint allows: MaxRecvIOV, MaxRequestIOV, MaxRDMAReadIOV, MaxRDMAWriteIOV")
	errBounds   = refuse(errArg3, "a segment is not inside its memory region")
	errTooLong  = refuse(errArg3, "more bytes than the endpoint allows: MaxMessageSize, MaxRDMASize")
	errNoReads  = refuse(ErrInvalidParameter, "reads and atomics need MaxRDMAReadOut above 0 here, and MaxRDMAReadIn above 0 at the peer")
	errFlags5   = refuse(errArg5, flagsReason)
	errFlags6   = refuse(errArg6, flagsReason)
	errFlags7   = refuse(errArg7, flagsReason)
	errShort    = refuse(ErrLengthError, "the remote range of a write, or the local memory of a read, is too short for the data")
)

const flagsReason = "a completion flag is not legal for this call or with the endpoint's completion flags"

// stateErrors has, for each state of an endpoint, ErrInvalidState with the subtype for that state.
var stateErrors = [...]error{
	EPUnconnected:             with(ErrInvalidState, SubInvalidStateEPUnconnected),
	2:                         with(ErrInvalidState, SubInvalidStateEPReserved),
	4:                         with(ErrInvalidState, SubInvalidStateEPPassConnPending),
	EPActiveConnectionPending: with(ErrInvalidState, SubInvalidStateEPActConnPending),
	7:                         with(ErrInvalidState, SubInvalidStateEPTentConnPending),
	EPConnected:               with(ErrInvalidState, SubInvalidStateEPConnected),
	EPDisconnectPending:       with(ErrInvalidState, SubInvalidStateEPDiscPending),
	EPDisconnected:            with(ErrInvalidState, SubInvalidStateEPDisconnected),
	EPCompletionPending:       with(ErrInvalidState, SubInvalidStateEPComplPending),
}

var returnNames = map[Return]string{
	Success: "DAT_SUCCESS", 0x00010000: "DAT_ABORT", 0x00020000: "DAT_CONN_QUAL_IN_USE",
	0x00030000: "DAT_INSUFFICIENT_RESOURCES", 0x00040000: "DAT_INTERNAL_ERROR", 0x00050000: "DAT_INVALID_HANDLE",
	0x00060000: "DAT_INVALID_PARAMETER", 0x00070000: "DAT_INVALID_STATE", 0x00080000: "DAT_LENGTH_ERROR",
	0x00090000: "DAT_MODEL_NOT_SUPPORTED", 0x000A0000: "DAT_PROVIDER_NOT_FOUND", 0x000B0000: "DAT_PRIVILEGES_VIOLATION",
	0x000C0000: "DAT_PROTECTION_VIOLATION", 0x000D0000: "DAT_QUEUE_EMPTY", 0x000E0000: "DAT_QUEUE_FULL",
	0x000F0000: "DAT_TIMEOUT_EXPIRED", 0x00100000: "DAT_PROVIDER_ALREADY_REGISTERED", 0x00110000: "DAT_PROVIDER_IN_USE",
	0x00120000: "DAT_INVALID_ADDRESS", 0x00130000: "DAT_INTERRUPTED_CALL", 0x00140000: "DAT_CONN_QUAL_UNAVAILABLE",
	0x00150000: "DAT_RESERVED_LMR", 0x00160000: "DAT_PORT_IN_USE", 0x00170000: "DAT_COMM_NOT_SUPPORTED",
	0x3FFF0000: "DAT_NOT_IMPLEMENTED",
}

const (
	typeMask    = 0x3FFF0000
	subtypeMask = 0x0000FFFF
)

// with returns the DAT error err with subtype s.
func with(err error, s Subtype) error { return err.(Return).Type() | Return(s) }

// Type returns the type without the subtype (DAT_GET_TYPE).
func (r Return) Type() Return { return r & typeMask }

// Subtype returns the subtype, or NoSubtype (DAT_GET_SUBTYPE).
func (r Return) Subtype() Subtype { return Subtype(r & subtypeMask) }

// Strings returns the DAT names of the type (major) and of the subtype (minor) of r (dat_strerror). The result minor is
// "" if r has no subtype. If the type or the subtype is unknown, Strings returns ErrInvalidParameter.
func (r Return) Strings() (major, minor string, err error) {
	major, known := returnNames[r.Type()]
	if !known || int(r.Subtype()) >= len(subtypeNames) {
		return "", "", fail(ErrInvalidParameter, "%#08x is not a return code of DAT", uint32(r))
	}
	return major, r.Subtype().String(), nil
}

// Error returns the DAT name of the type, and that of the subtype in parentheses.
func (r Return) Error() string {
	switch major, minor, err := r.Strings(); {
	case err != nil:
		return fmt.Sprintf("DAT_RETURN(%#08x)", uint32(r))
	case minor != "":
		return major + " (" + minor + ")"
	default:
		return major
	}
}

// Is reports whether target is a Return of the same type. If target has a subtype, the subtypes must be equal too.
func (r Return) Is(target error) bool {
	t, ok := target.(Return)
	return ok && (r == t || r.Type() == t)
}

// postError returns the DAT error for err, with which package wire refused a post. If the reason is the state of the
// endpoint, the DAT error has the subtype for that state.
func (ep *EP) postError(err error) error {
	if err == wire.ErrState {
		return stateErrors[ep.State()]
	}
	return datError(err)
}

// datError returns the DAT error for err, an error of package wire. For errors of posts, it does not allocate.
func datError(err error) error {
	if _, ok := err.(Return); ok {
		return err
	}
	switch err {
	case nil:
		return nil
	case wire.ErrQueueFull:
		return errFull
	case wire.ErrTooManyConns:
		return errTEP
	case wire.ErrTooMany:
		return errRegions
	case wire.ErrState, wire.ErrPosted:
		return ErrInvalidState
	case wire.ErrBadKey:
		return errContext
	case wire.ErrRights:
		return errRights
	case wire.ErrZone:
		return errZone
	case wire.ErrSegments:
		return errSegments
	case wire.ErrBounds:
		return errBounds
	case wire.ErrTooLong:
		return errTooLong
	case wire.ErrNoReads:
		return errNoReads
	case wire.ErrPrivateData:
		return ErrInvalidParameter
	case wire.ErrInUse:
		return ErrConnQualInUse
	case wire.ErrGone:
		return errHandleCR
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

// fail returns an error that wraps the DAT error r and adds a text. The text says what is wrong and, if possible, what
// to do.
func fail(r error, format string, args ...any) error {
	return fmt.Errorf("dat: %w: %s", r, fmt.Sprintf(format, args...))
}
