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

// limitedLink is a link with little room for received packets.
type limitedLink struct {
	link.Link
	window, frames int
}

func (l limitedLink) Caps() link.Caps {
	c := l.Link.Caps()
	c.RxWindow, c.RxFrames = l.window, l.frames
	return c
}

// A host tells its peers no larger receive window than its link has room for, in the kernel and for early packets.
func TestReceiveWindowOfLink(t *testing.T) {
	for _, tt := range []struct {
		window, frames int // RxWindow, RxFrames
		payload        int // MTU less the headers
		want           uint16
	}{
		{0, 4096, 1472, proto.MaxWindow},
		{1, 4096, 1472, minPeerWindow},
		{100, 4096, 1472, 98},
		{1 << 20, 4096, 1472, proto.MaxWindow},
		{0, 512, 1472, 512},
		{100, 512, 1472, 98},
		{0, 1024, 8972, 256}, // four frames a packet
		{0, 16, 1472, minPeerWindow},
	} {
		h, err := NewHost(randReader{randSource(1)}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		l := simlink.New(simlink.Config{MTU: tt.payload, FrameSize: 2304, Segments: 4}).Link(netip.MustParseAddrPort("10.0.0.1:17473"))
		e, err := h.NewEngine(limitedLink{l, tt.window, tt.frames}, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := Conn{eng: e}
		if got := c.hello(nil).Window; got != tt.want {
			t.Errorf("a buffer of %d packets, %d frames, packets of %d bytes: window %d, want %d", tt.window, tt.frames, tt.payload, got, tt.want)
		}
	}
}
