package dat

import (
	"fmt"
	"testing"
)

// String returns the number of a value without a name, so that a value in a log can be looked up.
func TestUnknownValuesShowTheirNumber(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"DAT_EP_STATE(0x63)":              EPState(99),
		"DAT_EVENT_NUMBER(0x12345)":       EventNumber(0x12345),
		"DAT_DTO_COMPLETION_STATUS(0xc8)": DTOStatus(200),
		"DAT_HANDLE_TYPE(0x2a)":           HandleType(42),
		"DAT_RETURN_SUBTYPE(0x7d0)":       Subtype(2000),
		"ConnState(0x6)":                  ConnState(6),
		"Cause(0x6)":                      Cause(6),
		"":                                NoSubtype,
	} {
		if got := v.String(); got != want {
			t.Errorf("%T: %q, want %q", v, got, want)
		}
	}
}
