package dat

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// statuses has the errors of DAT, by the names of their variables.
var statuses = map[string]error{
	"ErrAbort": ErrAbort, "ErrConnQualInUse": ErrConnQualInUse, "ErrInsufficientResources": ErrInsufficientResources,
	"ErrInternalError": ErrInternalError, "ErrInvalidHandle": ErrInvalidHandle, "ErrInvalidParameter": ErrInvalidParameter,
	"ErrInvalidState": ErrInvalidState, "ErrLengthError": ErrLengthError, "ErrModelNotSupported": ErrModelNotSupported,
	"ErrProviderNotFound": ErrProviderNotFound, "ErrPrivilegesViolation": ErrPrivilegesViolation,
	"ErrProtectionViolation": ErrProtectionViolation, "ErrQueueEmpty": ErrQueueEmpty, "ErrQueueFull": ErrQueueFull,
	"ErrTimeoutExpired": ErrTimeoutExpired, "ErrProviderAlreadyRegistered": ErrProviderAlreadyRegistered,
	"ErrProviderInUse": ErrProviderInUse, "ErrInvalidAddress": ErrInvalidAddress, "ErrInterruptedCall": ErrInterruptedCall,
	"ErrConnQualUnavailable": ErrConnQualUnavailable, "ErrReservedLMR": ErrReservedLMR, "ErrPortInUse": ErrPortInUse,
	"ErrCommNotSupported": ErrCommNotSupported, "ErrNotImplemented": ErrNotImplemented,
}

// TestErrorsIs: errors.Is finds each status, and no other, in every form in which a call returns it.
func TestErrorsIs(t *testing.T) {
	for name, exported := range exportedNames(t) {
		if exported && strings.HasPrefix(name, "Err") && statuses[name] == nil {
			t.Errorf("%s is not tested", name)
		}
	}
	for name, status := range statuses {
		for form, err := range map[string]error{
			"as it is": status, "with a subtype": with(status, SubInvalidArg3), "with a text": fail(status, "why"),
			"with a subtype and a text": fail(with(status, SubInvalidArg3), "why"), "of a post": refuse(status, "why"),
			"of a post with a subtype": refuse(with(status, SubInvalidArg3), "why"), "of Open": &openError{"eth0", status, errors.New("why")},
			"wrapped by the caller": fmt.Errorf("connecting: %w", refuse(status, "why")), "joined": errors.Join(errors.New("why"), status),
		} {
			for other, target := range statuses {
				if is := errors.Is(err, target); is != (name == other) {
					t.Errorf("%s %s: errors.Is(err, %s) is %v", name, form, other, is)
				}
			}
			var r Return
			if !errors.As(err, &r) || r.Type() != status.(Return) {
				t.Errorf("%s %s: errors.As finds %v", name, form, r)
			}
			if errors.Is(err, Success) {
				t.Errorf("%s %s is Success", name, form)
			}
		}
	}
}
