package ianame

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want Name
		err  error
	}{
		{"xdp:eth0", Name{Device: "xdp:eth0", Kind: XDP, Interface: "eth0"}, nil},
		{"auto:eth0", Name{Device: "auto:eth0", Kind: Auto, Interface: "eth0"}, nil},
		{"auto:eth0,copy", Name{Device: "auto:eth0,copy", Kind: XDP, Interface: "eth0", Mode: "copy"}, nil},
		{"  udp:10.0.0.1   port=4000 ", Name{Device: "udp:10.0.0.1", Kind: UDP, Addr: netip.MustParseAddr("10.0.0.1"), Port: 4000}, nil},
		{"udp:::ffff:10.0.0.1", Name{Device: "udp:::ffff:10.0.0.1", Kind: UDP, Addr: netip.MustParseAddr("10.0.0.1")}, nil},
		{"udp:fe80::1%eth0", Name{Device: "udp:fe80::1%eth0", Kind: UDP, Addr: netip.MustParseAddr("fe80::1%eth0")}, nil},
		{"xdp:eth0,zero-copy queues=3 port=1 peerport=2 silence=1m", Name{Device: "xdp:eth0,zero-copy", Kind: XDP, Interface: "eth0",
			Mode: "zero-copy", Queues: 3, Port: 1, PeerPort: 2, Silence: time.Minute}, nil},
		{"xdp:eth0 progress=interrupts", Name{Device: "xdp:eth0", Kind: XDP, Interface: "eth0", Progress: "interrupts"}, nil},
		{"", Name{}, ErrNotAdapter},
		{"eth0", Name{}, ErrNotAdapter},
		{"xdp:", Name{}, ErrNotAdapter},
		{"tcp:eth0", Name{}, ErrNotAdapter},
		{"xdp:eth0,fast", Name{}, ErrInvalid},
		{"udp:eth0 port=4000", Name{Device: "udp:eth0", Kind: UDP, Interface: "eth0", Port: 4000}, nil},
		{"udp:10.0.0.256", Name{}, ErrInvalid},
		{"udp:fe80:::1", Name{}, ErrInvalid},
		{"udp:10.0.0.1/24", Name{}, ErrInvalid},
		{"udp:0.0.0.0", Name{}, ErrInvalid},
		{"udp:ff02::1", Name{}, ErrInvalid},
		{"xdp:eth0 queue=3", Name{}, ErrInvalid},
		{"xdp:eth0 port", Name{}, ErrInvalid},
		{"xdp:eth0 port=0", Name{}, ErrInvalid},
		{"xdp:eth0 port=65536", Name{}, ErrInvalid},
		{"xdp:eth0 queues=-1", Name{}, ErrInvalid},
		{"xdp:eth0 silence=30", Name{}, ErrInvalid},
		{"xdp:eth0 silence=-1s", Name{}, ErrInvalid},
		{"xdp:eth0 udp:::1", Name{}, ErrInvalid},
		{"xdp:eth0 progress", Name{}, ErrInvalid},
		{"udp:10.0.0.1 offload=off", Name{Device: "udp:10.0.0.1", Kind: UDP, Addr: netip.MustParseAddr("10.0.0.1"), NoOffload: true}, nil},
		{"udp:10.0.0.1 offload=on", Name{}, ErrInvalid},
		{"xdp:eth0 progress=fast", Name{}, ErrInvalid},
		{"xdp:eth0 key=/etc/a.key peers=/etc/peers", Name{Device: "xdp:eth0", Kind: XDP, Interface: "eth0", Key: "/etc/a.key", Peers: "/etc/peers"}, nil},
		{"xdp:eth0 insecure", Name{Device: "xdp:eth0", Kind: XDP, Interface: "eth0", Insecure: true}, nil},
		{"xdp:eth0 insecure=yes", Name{}, ErrInvalid},
		{"xdp:eth0 known=/etc/servers announce", Name{Device: "xdp:eth0", Kind: XDP, Interface: "eth0", Known: "/etc/servers", Announce: true}, nil},
		{"xdp:eth0 announce=yes", Name{}, ErrInvalid},
		{"xdp:eth0 known", Name{}, ErrInvalid},
		{"xdp:eth0 key=", Name{}, ErrInvalid},
		{"xdp:eth0 peers", Name{}, ErrInvalid},
		{"xdp:eth0 key=a key=b", Name{}, ErrInvalid},
		{"xdp:eth0 insecure port=1 insecure", Name{}, ErrInvalid},
	}
	for _, tt := range tests {
		got, err := Parse(tt.text)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v, %v", tt.text, got, err, tt.want, tt.err)
		}
	}
}

// TestTwice: the error names the option that is there twice. The first does not count silently, and nor does the last.
func TestTwice(t *testing.T) {
	for _, key := range []string{"port=1", "peerport=1", "queues=1", "silence=1s", "progress=busy", "offload=off", "key=a", "peers=a", "known=a", "announce", "insecure"} {
		_, err := Parse("udp:10.0.0.1 " + key + " " + key)
		name, _, _ := strings.Cut(key, "=")
		if want := name + " is there twice: write it once"; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", key, err, want)
		}
	}
}
