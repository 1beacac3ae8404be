package dat

import (
	"errors"
	"testing"
)

// Err must be nil for success only, and must say what has failed and why.
func TestEventErr(t *testing.T) {
	for _, tc := range []struct {
		ev   Event
		want string // empty: no error
	}{
		{Event{Number: EventDTOCompletion}, ""},
		{Event{Number: EventIBDTO}, ""},
		{Event{Number: EventEstablished}, ""},
		{Event{Number: EventConnectionRequest}, ""},
		{Event{Number: EventSoftware}, ""},
		{Event{Number: EventDTOCompletion, Status: DTOFlushed}, "dat: operation failed: DAT_DTO_ERR_FLUSHED"},
		{Event{Number: EventRMRBindCompletion, Status: DTORMRFailed}, "dat: operation failed: DAT_RMR_OPERATION_FAILED"},
		{Event{Number: EventTimedOut}, "dat: DAT_CONNECTION_EVENT_TIMED_OUT"},
		{Event{Number: EventDisconnected}, "dat: DAT_CONNECTION_EVENT_DISCONNECTED"},
		{Event{Number: EventBroken, BreakReason: BreakTimeout}, "dat: DAT_CONNECTION_EVENT_BROKEN: the other side was silent, posted no receive or answered no read for too long"},
		{Event{Number: EventBroken, BreakReason: BreakLength | BreakByPeer}, "dat: DAT_CONNECTION_EVENT_BROKEN: closed by the peer: a message was longer than its receive"},
		{Event{Number: EventAsyncEPBroken}, "dat: DAT_ASYNC_ERROR_EP_BROKEN"},
	} {
		err := tc.ev.Err()
		if got := errorText(err); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.ev.Number, got, tc.want)
		}
		if e := (*EventError)(nil); err != nil && (!errors.As(err, &e) || e.Number != tc.ev.Number || e.Status != tc.ev.Status || e.Reason != tc.ev.BreakReason) {
			t.Errorf("%v: %+v", tc.ev.Number, e)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
