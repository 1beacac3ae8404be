package dat

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var strerrorRules = []topic{
	{"dat_strerror", []rule{
		{"each type has its name and number", func(t *testing.T, _ network) {
			for i, want := range []struct {
				err  error
				name string
			}{1: {ErrAbort, "DAT_ABORT"}, 2: {ErrConnQualInUse, "DAT_CONN_QUAL_IN_USE"},
				3: {ErrInsufficientResources, "DAT_INSUFFICIENT_RESOURCES"}, 4: {ErrInternalError, "DAT_INTERNAL_ERROR"},
				5: {ErrInvalidHandle, "DAT_INVALID_HANDLE"}, 6: {ErrInvalidParameter, "DAT_INVALID_PARAMETER"},
				7: {ErrInvalidState, "DAT_INVALID_STATE"}, 8: {ErrLengthError, "DAT_LENGTH_ERROR"},
				9: {ErrModelNotSupported, "DAT_MODEL_NOT_SUPPORTED"}, 10: {ErrProviderNotFound, "DAT_PROVIDER_NOT_FOUND"},
				11: {ErrPrivilegesViolation, "DAT_PRIVILEGES_VIOLATION"}, 12: {ErrProtectionViolation, "DAT_PROTECTION_VIOLATION"},
				13: {ErrQueueEmpty, "DAT_QUEUE_EMPTY"}, 14: {ErrQueueFull, "DAT_QUEUE_FULL"}, 15: {ErrTimeoutExpired, "DAT_TIMEOUT_EXPIRED"},
				16: {ErrProviderAlreadyRegistered, "DAT_PROVIDER_ALREADY_REGISTERED"}, 17: {ErrProviderInUse, "DAT_PROVIDER_IN_USE"},
				18: {ErrInvalidAddress, "DAT_INVALID_ADDRESS"}, 19: {ErrInterruptedCall, "DAT_INTERRUPTED_CALL"},
				20: {ErrConnQualUnavailable, "DAT_CONN_QUAL_UNAVAILABLE"}, 21: {ErrReservedLMR, "DAT_RESERVED_LMR"},
				22: {ErrPortInUse, "DAT_PORT_IN_USE"}, 23: {ErrCommNotSupported, "DAT_COMM_NOT_SUPPORTED"},
				24: {ErrNotImplemented, "DAT_NOT_IMPLEMENTED"}}[1:] {
				r, number := want.err.(Return), Return(i+1)<<16
				if i == 23 {
					number = 0x3fff0000
				}
				if major, minor, err := r.Strings(); r != number || major != want.name || minor != "" || err != nil {
					t.Errorf("%#x is %q, %q, %v, want %#x, %s", uint32(r), major, minor, err, uint32(number), want.name)
				}
			}
		}},
		{"success has a name too", func(t *testing.T, _ network) {
			if major, minor, err := Success.Strings(); major != "DAT_SUCCESS" || minor != "" || err != nil {
				t.Errorf("%q, %q, %v", major, minor, err)
			}
		}},
		{"the names of subtypes are unique", func(t *testing.T, _ network) {
			seen := map[string]bool{"": true}
			for s := Subtype(1); s <= SubThreadSafetyNotFound; s++ {
				_, minor, err := with(ErrInvalidState, s).(Return).Strings()
				if err != nil || seen[minor] || !strings.HasPrefix(minor, "DAT_") {
					t.Errorf("%d is %q, %v", s, minor, err)
				}
				seen[minor] = true
			}
			for s, want := range map[Subtype]string{1: "DAT_SUB_INTERRUPTED", 10: "DAT_RESOURCE_SRQ", 12: "DAT_INVALID_HANDLE_EP",
				36: "DAT_INVALID_HANDLE10", 37: "DAT_INVALID_ARG1", 46: "DAT_INVALID_ARG10", 47: "DAT_INVALID_STATE_EP_UNCONNECTED",
				63: "DAT_INVALID_STATE_EP_UNCONFIGURED", 78: "DAT_INVALID_STATE_EVD_WAITER", 85: "DAT_INVALID_STATE_SRQ_OPERATIONAL",
				88: "DAT_INVALID_STATE_SRQ_SHUTDOWN", 89: "DAT_PRIVILEGES_READ", 100: "DAT_NAME_NOT_REGISTERED", 103: "DAT_THREAD_SAFETY_NOT_FOUND"} {
				if s.String() != want {
					t.Errorf("%d is %s, want %s", s, s, want)
				}
			}
		}},
		{"an unknown type and an unknown subtype are refused", func(t *testing.T, _ network) {
			for _, r := range []Return{0x00180000, 0x10000000, 0x3ffe0000, 0x00070000 | 104, 0x0007ffff, 104} {
				_, _, err := r.Strings()
				wants(t, fmt.Sprintf("%#x", uint32(r)), err, ErrInvalidParameter)
				if r.Error() == "" {
					t.Errorf("%#x has no text", uint32(r))
				}
			}
		}},
		{"the class is not looked at", func(t *testing.T, _ network) {
			if major, minor, err := Return(0x80000000 | 0x00070000 | 52).Strings(); major != "DAT_INVALID_STATE" ||
				minor != "DAT_INVALID_STATE_EP_DISCONNECTED" || err != nil {
				t.Errorf("%q, %q, %v", major, minor, err)
			}
		}},
		{"an error is its type whatever the subtype, and not another subtype", func(t *testing.T, _ network) {
			e := with(ErrInvalidState, SubInvalidStateEPConnected)
			if !errors.Is(e, ErrInvalidState) || !errors.Is(e, e) || errors.Is(e, ErrInvalidHandle) ||
				errors.Is(e, with(ErrInvalidState, SubInvalidStateEPReserved)) || errors.Is(ErrInvalidState, e) {
				t.Error("errors.Is compares otherwise")
			}
		}},
		{"calls say which handle, which argument and which state", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, &EPAttr{MaxRecvDTOs: 1, MaxRequestDTOs: 1})
			idle := a.point(nil)
			none := struct {
				ep  *EP
				pz  *PZ
				lmr *LMR
				psp *PSP
				cr  *CR
			}{}
			ok(t, x.PostRecv(nil, 1, 0))
			outside := []LMRTriplet{x.lmr.Segment(pointMem, 1)}
			for want, err := range map[error]error{
				with(ErrInvalidHandle, SubInvalidHandleEP):          none.ep.PostRecv(nil, 1, 0),
				with(ErrInvalidHandle, SubInvalidHandlePZ):          none.pz.Free(),
				with(ErrInvalidHandle, SubInvalidHandleLMR):         none.lmr.Free(),
				with(ErrInvalidHandle, SubInvalidHandlePSP):         none.psp.Free(),
				with(ErrInvalidHandle, SubInvalidHandleCR):          none.cr.Reject(nil),
				with(ErrInvalidState, SubInvalidStateEPUnconnected): idle.PostSend(nil, 1, 0),
				with(ErrInvalidState, SubInvalidStatePZInUse):       a.pz.Free(),
				with(ErrInvalidState, SubInvalidStateIAInUse):       a.ia.CloseWith(CloseGraceful),
				with(ErrInvalidParameter, SubInvalidArg2):           x.PostSend(make([]LMRTriplet, 17), 1, 0),
				with(ErrInvalidParameter, SubInvalidArg3):           x.PostSend(outside, 1, 0),
				with(ErrInvalidParameter, SubInvalidArg5):           x.PostSend(nil, 1, 0x80),
				with(ErrInvalidParameter, SubInvalidArg6):           x.PostRDMAWrite(nil, 1, y.lmr.Remote(0, 0), 0x80),
				with(ErrInsufficientResources, SubResourceMemory):   x.PostRecv(nil, 1, 0),
				with(ErrInvalidParameter, SubInvalidArg1):           openError1(strings.Repeat("n", MaxName)),
				with(ErrProviderNotFound, SubNameNotRegistered):     openError1("n"),
				with(ErrInvalidHandle, SubInvalidHandleIA):          (*IA)(nil).CloseWith(0),
			} {
				wants(t, want.Error(), err, want)
			}
		}},
	}},
}

func openError1(name string) error {
	_, err := Open(name, Options{})
	return err
}
