package wire

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

// A link that cannot carry a handshake must be refused, and the error must say what to do.
func TestTooSmallLink(t *testing.T) {
	for mtu, want := range map[int]bool{minPacket - 1: false, minPacket: true} {
		h, err := NewHost(randReader{randSource(1)}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		l := simlink.New(simlink.Config{MTU: mtu}).Link(netip.MustParseAddrPort("10.0.0.1:17473"))
		_, err = h.NewEngine(l, 0)
		if ok := err == nil; ok != want {
			t.Errorf("MTU %d: got %v", mtu, err)
		}
		if err != nil && !strings.Contains(err.Error(), "raise its MTU") {
			t.Errorf("MTU %d: %v", mtu, err)
		}
	}
}
