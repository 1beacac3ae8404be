package udplink

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

// Shed drops what comes from one address and begins with one value, and nothing else, until it is called again.
func TestShed(t *testing.T) {
	for name, addrs := range map[string][2]string{"IPv4": {"127.0.0.1", "127.0.0.2"}, "IPv6": {"::1", "::1"}} {
		t.Run(name, func(t *testing.T) {
			foe, friend := netip.MustParseAddr(addrs[0]), netip.MustParseAddr(addrs[1])
			o := DefaultOptions()
			o.Port = 0
			u, err := Open(foe, o)
			if err != nil {
				t.Skip(err)
			}
			defer u.Close()
			sender := func(from netip.Addr) *net.UDPConn {
				c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), net.UDPAddrFromAddrPort(u.Local()))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				return c
			}
			bad, good := sender(foe), sender(friend)
			received := func() (all string) {
				bufs := make([]link.Buf, 8)
				for u.Wait(20 * time.Millisecond); ; {
					n := u.Recv(bufs)
					if n == 0 {
						return all
					}
					for i := range bufs[:n] {
						all += string(bufs[i].Data) + " "
					}
					u.Free(bufs[:n])
				}
			}
			exchange := func() string {
				for _, m := range []string{"3x", "Cx", "4x"} { // 0x33, 0x43, 0x34
					if _, err := bad.Write([]byte(m)); err != nil {
						t.Fatal(err)
					}
				}
				if friend != foe {
					if _, err := good.Write([]byte("3y")); err != nil {
						t.Fatal(err)
					}
				}
				return received()
			}
			all, rest := "3x Cx 4x ", "4x "
			if friend != foe {
				all, rest = all+"3y ", rest+"3y "
			}
			if got := exchange(); got != all {
				t.Errorf("before: %q, want %q", got, all)
			}
			u.Shed(foe, 0x3, 0xf)
			if got := exchange(); got != rest {
				t.Errorf("shed: %q, want %q", got, rest)
			}
			u.Shed(netip.Addr{}, 0, 0)
			if got := exchange(); got != all {
				t.Errorf("after: %q, want %q", got, all)
			}
		})
	}
}
