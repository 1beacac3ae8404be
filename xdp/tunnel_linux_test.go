package xdp

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

// An interface whose packets have no Ethernet header is refused: AF_XDP would carry nothing that we send.
func TestTunnelIsRefused(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	onSide(t, l, lab.A, func() error {
		if err := labtest.AddTunnel("tun0", netip.MustParsePrefix("10.74.0.1/24")); err != nil {
			return err
		}
		d, err := Open("tun0", DefaultOptions())
		if err == nil {
			return errors.Join(errors.New("it was opened"), d.Close())
		}
		if !errors.Is(err, link.ErrUnsupported) || !strings.Contains(err.Error(), "no Ethernet header") {
			t.Errorf("got %v", err)
		}
		return nil
	})
}
