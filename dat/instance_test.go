package dat

import (
	"errors"
	"testing"
	"time"
)

func TestInstanceOptions(t *testing.T) {
	tests := []struct {
		text, name string
		port       uint16
		queues     int
		giveUp     time.Duration
		err        error
	}{
		{"xdp:eth0", "xdp:eth0", 7, 1, 0, nil},
		{"", "", 7, 1, 0, nil},
		{"  udp:10.0.0.1   port=4000 ", "udp:10.0.0.1", 4000, 1, 0, nil},
		{"xdp:eth0,copy queues=3 port=1", "xdp:eth0,copy", 1, 3, 0, nil},
		{"udp:10.0.0.1 silence=1m", "udp:10.0.0.1", 7, 1, time.Minute, nil},
		{"xdp:eth0 queue=3", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 port", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 port=0", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 peerport=0", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 peer=4000", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 port=65536", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 queues=-1", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 silence", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 silence=30", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 silence=99ms", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 silence=61s", "", 0, 0, 0, ErrInvalidParameter},
		{"xdp:eth0 udp:::1", "", 0, 0, 0, ErrInvalidParameter},
	}
	for _, tt := range tests {
		o := Options{Port: 7, Queues: 1}
		name, err := o.take(tt.text)
		if !errors.Is(err, tt.err) || err == nil && (name != tt.name || o.Port != tt.port || o.Queues != tt.queues || o.Limits.GiveUp != tt.giveUp) {
			t.Errorf("%q: got %q, port %d, %d queues, silence %v, %v; want %q, %d, %d, %v, %v",
				tt.text, name, o.Port, o.Queues, o.Limits.GiveUp, err, tt.name, tt.port, tt.queues, tt.giveUp, tt.err)
		}
	}
}
