package rawbench

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var testConfig = Config{
	Interface: "veth0", Engine: Native, MTU: 1500, Port: 17473,
	Local: netip.MustParseAddr("10.73.0.1"), Peer: netip.MustParseAddr("10.73.0.2"),
	PeerMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2},
}

// TestTurn: a frame that was turned twice is unchanged, and its checksum is correct in both directions.
func TestTurn(t *testing.T) {
	h := template(testConfig, net.HardwareAddr{2, 0, 0, 0, 0, 1})
	setSize(h[:], MinFrame)
	sent := h
	for range 2 {
		if got := checksum(h[ipStart:udpStart]); got != 0 {
			t.Errorf("checksum over header: got %#x, want 0", got)
		}
		turn(h[:])
	}
	if h != sent {
		t.Errorf("got %x, want %x", h, sent)
	}
	turn(h[:])
	if got, want := net.HardwareAddr(h[:6]), (net.HardwareAddr{2, 0, 0, 0, 0, 1}); got.String() != want.String() {
		t.Errorf("turned frame goes to %s, want %s", got, want)
	}
}

func TestCountRoundTrip(t *testing.T) {
	now := time.Now()
	want := count{frames: 1, bytes: 2, elapsed: 3, dropped: 4, coreShare: 0.5}
	sent := want
	sent.first, sent.last = now, now.Add(3)
	b := make([]byte, resultLen)
	sent.encode(b)
	if diff := cmp.Diff(want, decodeCount(b), cmp.AllowUnexported(count{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
	}{
		{"unknown engine", func(c *Config) { c.Engine = "dpdk" }},
		{"asavie jumbo", func(c *Config) { c.Engine, c.MTU = Asavie, 9000 }},
		{"asavie mode", func(c *Config) { c.Engine, c.Mode = Asavie, "copy" }},
		{"IPv6", func(c *Config) { c.Peer = netip.IPv6Loopback() }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := testConfig
			tt.change(&c)
			if err := c.validate(); !errors.Is(err, ErrEngine) {
				t.Errorf("got %v, want %v", err, ErrEngine)
			}
		})
	}
}

// TestDropsSince: earlier drops of the interface do not hide drops that the engine counts.
func TestDropsSince(t *testing.T) {
	base := dropCounters{device: drops{206, 9}}
	now := dropCounters{engine: drops{41, 0}, device: drops{210, 12}}
	if got, want := now.since(base), (drops{41, 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestInterfaceDrops(t *testing.T) {
	const table = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    1    0     0          0         0        0       0    0    2    0     0       0          0
 veth0: 2215936   34624    0    4    3     0          0         0     1000      10    0    8    1     0       0          0
`
	if got, want := interfaceDrops(table, "veth0"), (drops{7, 9}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := interfaceDrops(table, "eth9"); got != (drops{}) {
		t.Errorf("unknown interface: got %+v", got)
	}
}
