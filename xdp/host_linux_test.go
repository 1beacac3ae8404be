package xdp

import (
	"net/netip"
	"testing"
)

// TestSourceIsServed checks that host.source returns only addresses that the device serves, whatever the kernel
// prefers. The device would not receive answers to another address.
func TestSourceIsServed(t *testing.T) {
	h := &host{local: netip.MustParseAddrPort("10.0.0.1:17473"),
		served: serving("10.0.0.1/24", "192.0.2.1/24", "fe80::1/64", "fd91::2/64", "2001:db8::2/64")}
	for _, tt := range []struct{ to, kernel, want string }{
		{"10.0.0.9", "10.0.0.1", "10.0.0.1"},
		{"192.0.2.9", "192.0.2.1", "192.0.2.1"},   // the kernel's choice
		{"192.0.2.9", "192.0.2.77", "10.0.0.1"},   // the kernel's choice is not served
		{"fd91::9", "fd91::2", "fd91::2"},         // the kernel's choice
		{"fd91::9", "2001:db8::2", "2001:db8::2"}, // the kernel's choice
		{"fd91::9", "fd91::77", "fd91::2"},        // the kernel's choice is not served
		{"2001:db8::9", "2001:db8::77", "2001:db8::2"},
		{"fe80::9", "fe80::77", "fe80::1"},
	} {
		if got := h.source(netip.MustParseAddr(tt.to), netip.MustParseAddr(tt.kernel)); got.String() != tt.want {
			t.Errorf("to %s, the kernel takes %s: got %v, want %s", tt.to, tt.kernel, got, tt.want)
		}
	}
	h.pinned = true
	if got := h.source(netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("192.0.2.1")); got != h.local.Addr() {
		t.Errorf("the opener has named %v: got %v", h.local, got)
	}
	v4 := &host{local: h.local, served: serving("10.0.0.1/24", "192.0.2.1/24")}
	if got := v4.source(netip.MustParseAddr("fd91::9"), netip.MustParseAddr("fd91::77")); got.IsValid() {
		t.Errorf("got %v without an address of the family", got)
	}
}
