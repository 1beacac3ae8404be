package places

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestHost: all addresses of an IPv6 /64 are one host. An IPv4 address is a host of its own.
func TestHost(t *testing.T) {
	for addr, want := range map[string]string{"10.0.0.1": "10.0.0.1", "2001:db8::1": "2001:db8::", "2001:db8:0:0:ffff::9": "2001:db8::"} {
		if got := Host(netip.MustParseAddr(addr)); got != netip.MustParseAddr(want) {
			t.Errorf("%s is of host %v, want %s", addr, got, want)
		}
	}
}

// TestErrorsAreFew: of many errors in a second, some are printed. The next line counts the others.
func TestErrorsAreFew(t *testing.T) {
	var out strings.Builder
	e, now := Errors{Out: &out}, time.Now()
	want := ""
	for i := range 1000 {
		e.print("bad", now)
		if i < maxErrors {
			want += "bad\n"
		}
	}
	e.print("worse", now.Add(2*time.Second))
	if want += fmt.Sprintf("(%d errors left out) worse\n", 1000-maxErrors); out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
