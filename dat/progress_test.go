package dat

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// Open refuses a mode that does not exist, and the busy mode if there is only one processor.
func TestProgressIsRefused(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, o := range map[string]Options{
		"GOMAXPROCS":       {Progress: ProgressBusy},
		"ProgressAdaptive": {Progress: 3},
	} {
		_, err := Open("udp:127.0.0.1", o)
		if !errors.Is(err, ErrInvalidParameter) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", o.Progress, err)
		}
	}
	if _, err := Open("udp:127.0.0.1 progress=busy", Options{}); !errors.Is(err, ErrInvalidParameter) {
		t.Error(err)
	}
}
