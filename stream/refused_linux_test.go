package stream

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestNoPath: a dial to an address that the own kernel refuses fails at once, with the error number that kernel TCP has.
func TestNoPath(t *testing.T) {
	labtest.RequireXDP(t)
	refused := netip.MustParsePrefix("10.99.0.0/24")
	for _, tt := range []struct {
		name    string
		prepare func() error
		to      netip.Addr
	}{
		{"prohibit rule", func() error { return labtest.RefuseByRule(refused, syscall.RTN_PROHIBIT) }, refused.Addr().Next()},
		{"blackhole rule", func() error { return labtest.RefuseByRule(refused, syscall.RTN_BLACKHOLE) }, refused.Addr().Next()},
		{"unreachable rule", func() error { return labtest.RefuseByRule(refused, syscall.RTN_UNREACHABLE) }, refused.Addr().Next()},
		{"prohibit route", func() error { return labtest.RefuseByRoute(refused, syscall.RTN_PROHIBIT) }, refused.Addr().Next()},
		{"blackhole route", func() error { return labtest.RefuseByRoute(refused, syscall.RTN_BLACKHOLE) }, refused.Addr().Next()},
		{"unreachable route", func() error { return labtest.RefuseByRoute(refused, syscall.RTN_UNREACHABLE) }, refused.Addr().Next()},
		{"no route", nil, refused.Addr().Next()},
		{"group", nil, netip.MustParseAddr("224.0.0.7")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := labtest.New(t, lab.Options{})
			check(t, n.Do(lab.A, func() error {
				if tt.prepare != nil {
					check(t, tt.prepare())
				}
				to := netip.AddrPortFrom(tt.to, 7000).String()
				_, want := net.DialTimeout("tcp", to, time.Second)
				for _, adapter := range []string{xdpAdapter, "udp:" + lab.A.Addr4().String()} {
					sameNumber(t, adapter, to, want)
				}
				return nil
			}))
		})
	}
}

// TestBroadcast: neither does a dial to the broadcast address of a network wait for an answer.
func TestBroadcast(t *testing.T) {
	labtest.RequireXDP(t)
	n := labtest.New(t, lab.Options{})
	check(t, n.Do(lab.A, func() error {
		sameNumber(t, xdpAdapter, "10.73.0.255:7000", syscall.ENETUNREACH)
		sameNumber(t, "udp:"+lab.A.Addr4().String(), "10.73.0.255:7000", syscall.EACCES)
		return nil
	}))
}

// sameNumber checks that a dial fails at once, with the error number of want.
func sameNumber(t *testing.T, adapter, to string, want error) {
	t.Helper()
	var number syscall.Errno
	if !errors.As(want, &number) {
		t.Fatalf("%v has no number", want)
	}
	begun := time.Now()
	_, err := Dial(t.Context(), adapter, to)
	if took := time.Since(begun); !errors.Is(err, number) || took > 3*time.Second {
		t.Errorf("%s: %v after %v, want %v", adapter, err, took, number)
	}
}
