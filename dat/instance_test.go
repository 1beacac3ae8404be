package dat

import (
	"errors"
	"testing"
)

func TestInstanceOptions(t *testing.T) {
	tests := []struct {
		text, name string
		port       uint16
		queues     int
		err        error
	}{
		{"xdp:eth0", "xdp:eth0", 7, 1, nil},
		{"", "", 7, 1, nil},
		{"  udp:10.0.0.1   port=4000 ", "udp:10.0.0.1", 4000, 1, nil},
		{"xdp:eth0,copy queues=3 port=1", "xdp:eth0,copy", 1, 3, nil},
		{"xdp:eth0 queue=3", "", 0, 0, ErrInvalidParameter},
		{"xdp:eth0 port", "", 0, 0, ErrInvalidParameter},
		{"xdp:eth0 port=0", "", 0, 0, ErrInvalidParameter},
		{"xdp:eth0 port=65536", "", 0, 0, ErrInvalidParameter},
		{"xdp:eth0 queues=-1", "", 0, 0, ErrInvalidParameter},
		{"xdp:eth0 udp:::1", "", 0, 0, ErrInvalidParameter},
	}
	for _, tt := range tests {
		o := Options{Port: 7, Queues: 1}
		name, err := o.take(tt.text)
		if !errors.Is(err, tt.err) || err == nil && (name != tt.name || o.Port != tt.port || o.Queues != tt.queues) {
			t.Errorf("%q: got %q, port %d, %d queues, %v; want %q, %d, %d, %v",
				tt.text, name, o.Port, o.Queues, err, tt.name, tt.port, tt.queues, tt.err)
		}
	}
}
