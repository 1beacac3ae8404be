package dat

import (
	"errors"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/ianame"
)

func TestInstanceOptions(t *testing.T) {
	tests := []struct {
		text   string
		port   uint16
		queues int
		giveUp time.Duration
		mode   Progress
		err    error
	}{
		{"xdp:eth0", 7, 1, 0, ProgressBusy, nil},
		{"udp:10.0.0.1 port=4000", 4000, 1, 0, ProgressBusy, nil},
		{"xdp:eth0,copy queues=3 port=1", 1, 3, 0, ProgressBusy, nil},
		{"udp:10.0.0.1 silence=1m", 7, 1, time.Minute, ProgressBusy, nil},
		{"udp:10.0.0.1 progress=interrupts", 7, 1, 0, ProgressInterrupts, nil},
		{"udp:10.0.0.1 progress=adaptive", 7, 1, 0, ProgressAdaptive, nil},
		{"xdp:eth0 silence=99ms", 0, 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 silence=61s", 0, 0, 0, 0, ErrInvalidParameter},
	}
	for _, tt := range tests {
		n, err := ianame.Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Port: 7, Queues: 1, Progress: ProgressBusy}
		err = o.override(n)
		if !errors.Is(err, tt.err) || err == nil && (o.Port != tt.port || o.Queues != tt.queues || o.Limits.GiveUp != tt.giveUp || o.Progress != tt.mode) {
			t.Errorf("%q: got port %d, %d queues, silence %v, %v, %v; want %d, %d, %v, %v, %v",
				tt.text, o.Port, o.Queues, o.Limits.GiveUp, o.Progress, err, tt.port, tt.queues, tt.giveUp, tt.mode, tt.err)
		}
	}
}

// TestNamesThatCannotBeOpened: Open returns ErrProviderNotFound for a name that does not describe a device, and
// ErrInvalidParameter for an invalid description.
func TestNamesThatCannotBeOpened(t *testing.T) {
	for text, want := range map[string]error{"eth0": ErrProviderNotFound, "tcp:eth0": ErrProviderNotFound, "xdp:": ErrProviderNotFound,
		"udp:10.0.0.256": ErrInvalidParameter, "udp:0.0.0.0": ErrInvalidParameter, "xdp:eth0,fast": ErrInvalidParameter,
		"udp:127.0.0.1 speed=1": ErrInvalidParameter, "udp:127.0.0.1 silence=1ms": ErrInvalidParameter} {
		if ia, err := Open(text, DefaultOptions()); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
			if err == nil {
				ia.Close()
			}
		}
	}
}
