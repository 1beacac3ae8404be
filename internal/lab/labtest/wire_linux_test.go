package labtest_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestLossy sends datagrams in both directions, over IPv4 and IPv6. Each must arrive or be counted as lost.
func TestLossy(t *testing.T) {
	const sent, batch = 1000, 20 // a socket buffer has room for one batch
	for name, c := range map[string]struct {
		part     float64
		low, top int // limits for the number of lost frames; the kernel sends a few too
	}{"nothing": {0, 0, 0}, "half": {0.5, 310, 690}, "all": {1, sent, sent + batch}} {
		t.Run(name, func(t *testing.T) {
			l, w := labtest.NewLossy(t, lab.Options{Queues: 2, MTU: 3000}, c.part)
			for _, s := range []lab.Side{lab.A, lab.B} {
				know(t, l, s)
			}
			for _, addr := range []func(lab.Side) netip.Addr{lab.Side.Addr4, lab.Side.Addr6} {
				for _, from := range []lab.Side{lab.A, lab.B} {
					to := from.Peer()
					conn, peer := socket(t, l, from, addr(from)), socket(t, l, to, addr(to))
					before, arrived := lost(t, w, to), 0
					for n := range sent {
						if _, err := conn.WriteTo(make([]byte, 2900), peer.LocalAddr()); err != nil {
							t.Fatal(err)
						}
						if n++; n%batch == 0 {
							await(t, func() bool {
								arrived += read(t, peer)
								return arrived+lost(t, w, to)-before >= n
							})
						}
					}
					if n := lost(t, w, to) - before; n < c.low || n > c.top {
						t.Errorf("from %s: lost %d of %d, want %d to %d", from, n, sent, c.low, c.top)
					}
				}
			}
		})
	}
}

// know adds the other side's address to a side's neighbour table, so that only datagrams are sent.
func know(t *testing.T, l *lab.Lab, s lab.Side) {
	t.Helper()
	err := l.Do(s, func() error {
		dev, err := netlink.LinkByName(lab.Interface)
		if err != nil {
			return err
		}
		for _, a := range []netip.Addr{s.Peer().Addr4(), s.Peer().Addr6()} {
			err = errors.Join(err, netlink.NeighSet(&netlink.Neigh{LinkIndex: dev.Attrs().Index, State: netlink.NUD_PERMANENT,
				IP: a.AsSlice(), HardwareAddr: s.Peer().MAC()}))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func socket(t *testing.T, l *lab.Lab, s lab.Side, addr netip.Addr) (conn *net.UDPConn) {
	t.Helper()
	err := l.Do(s, func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// await waits until cond returns true.
func await(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); {
		if time.Now().After(deadline) {
			t.Fatal("datagrams neither lost nor arrived")
		}
	}
}

// read returns the number of datagrams that have arrived since the last call.
func read(t *testing.T, conn *net.UDPConn) (n int) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 1); ; n++ {
		if _, err := conn.Read(b); err != nil {
			return n
		}
	}
}

func lost(t *testing.T, w *labtest.Wire, to lab.Side) int {
	t.Helper()
	n, err := w.Lost(to)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}
