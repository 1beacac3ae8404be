package stream

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestZones: both ends of a stream between link-local addresses have the zone in their addresses, as those of package net
// have. A zone that is no interface, or another one than the adapter's, is an error that says so.
func TestZones(t *testing.T) {
	labtest.RequireXDP(t)
	for _, kind := range []string{"xdp", "udp"} {
		t.Run(kind, func(t *testing.T) {
			n := labtest.New(t, lab.Options{})
			var at [2]netip.Addr
			for _, s := range []lab.Side{lab.A, lab.B} {
				at[s] = netip.AddrFrom16([16]byte{0xfe, 0x80, 14: 0x73, 15: byte(s) + 1}).WithZone(lab.Interface)
				check(t, n.Do(s, func() error { return labtest.AddAddress(lab.Interface, netip.PrefixFrom(at[s].WithZone(""), 64)) }))
			}
			adapter := func(s lab.Side) string {
				if kind == "xdp" {
					return xdpAdapter
				}
				return fmt.Sprintf("udp:%v", at[s])
			}
			l := labListener(t, n, adapter(lab.B))
			check(t, n.Do(lab.A, func() error {
				d := Dialer{Adapter: adapter(lab.A), Timeout: 5 * time.Second}
				for _, zone := range []string{"nosuch", "lo"} {
					_, err := d.DialContext(t.Context(), "tcp", netip.AddrPortFrom(at[lab.B].WithZone(zone), 7000).String())
					if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "zone") || !strings.Contains(err.Error(), "%"+zone) {
						t.Errorf("zone %s: %v", zone, err)
					}
				}
				c, err := d.DialContext(t.Context(), "tcp", netip.AddrPortFrom(at[lab.B], 7000).String())
				if err != nil {
					return err
				}
				defer c.Close()
				accepted, err := l.Accept()
				if err != nil {
					return err
				}
				defer accepted.Close()
				for _, a := range []net.Addr{c.LocalAddr(), c.RemoteAddr(), accepted.LocalAddr(), accepted.RemoteAddr()} {
					if a.(*net.TCPAddr).Zone != lab.Interface {
						t.Errorf("%v has no zone", a)
					}
				}
				return nil
			}))
		})
	}
}
