package udplink

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// A tentative address is awaited. The error about another address names its state.
func TestAddressStates(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	on := func(side lab.Side, f func() error) {
		t.Helper()
		if err := l.Do(side, f); err != nil {
			t.Error(err)
		}
	}
	taken, good := netip.MustParsePrefix("fd80::5/64"), netip.MustParsePrefix("fd80::1/64")
	on(lab.B, func() error { return labtest.AddAddress(lab.Interface, taken) })
	for _, p := range []netip.Prefix{good, taken} {
		on(lab.A, func() error { return labtest.AddDetected(lab.Interface, p) })
	}
	for addr, words := range map[string]string{good.Addr().String(): "", taken.Addr().String(): "failed duplicate address detection",
		"fd80::9": "not an address of this host", "10.73.0.77": "not an address of this host"} {
		on(lab.A, func() error {
			u, err := Open(netip.MustParseAddr(addr), DefaultOptions())
			if err == nil {
				defer u.Close()
			}
			if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v, want %q", addr, err, words)
			}
			return nil
		})
	}
}
