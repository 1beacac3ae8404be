package wire

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
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

// limitedLink is a link with a small receive buffer in the kernel.
type limitedLink struct {
	link.Link
	window int
}

func (l limitedLink) Caps() link.Caps {
	c := l.Link.Caps()
	c.RxWindow = l.window
	return c
}

// A host tells its peers no larger receive window than its link has room for.
func TestReceiveWindowOfLink(t *testing.T) {
	for window, want := range map[int]uint16{0: proto.MaxWindow, 1: minPeerWindow, 100: 100, 1 << 20: proto.MaxWindow} {
		h, err := NewHost(randReader{randSource(1)}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		l := simlink.New(simlink.Config{}).Link(netip.MustParseAddrPort("10.0.0.1:17473"))
		e, err := h.NewEngine(limitedLink{l, window}, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := Conn{eng: e}
		if got := c.hello(nil).Window; got != want {
			t.Errorf("room for %d packets: window %d, want %d", window, got, want)
		}
	}
}
