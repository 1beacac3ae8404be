package places

import (
	"net/netip"
	"testing"
)

// TestHost: all addresses of an IPv6 /64 are one host. An IPv4 address is a host of its own.
func TestHost(t *testing.T) {
	for addr, want := range map[string]string{"10.0.0.1": "10.0.0.1", "2001:db8::1": "2001:db8::", "2001:db8:0:0:ffff::9": "2001:db8::"} {
		if got := Host(netip.MustParseAddr(addr)); got != netip.MustParseAddr(want) {
			t.Errorf("%s is of host %v, want %s", addr, got, want)
		}
	}
}
