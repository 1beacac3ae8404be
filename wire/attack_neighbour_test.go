//go:build !race

package wire

import (
	"net/netip"
	"testing"
	"time"
)

// Attack 3: a host with one address, or with many addresses of a network, requests connections and never confirms them.
// Each request is accepted at once. An honest host of the same network, or behind the same address, must still connect
// within a second, repeatedly.
func TestAttack03HalfOpenNeighbour(t *testing.T) {
	for _, tc := range []struct {
		name   string
		honest string
		burst  int // requests in 500 µs
		from   func(i int) netip.AddrPort
	}{
		{"an IPv4 network", "10.0.0.9:17473", 1, func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + i%100)}), uint16(i))
		}},
		{"one address", "10.0.0.9:17473", 1, func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 9}), uint16(i))
		}},
		{"more networks than places", "10.0.0.9:17473", 3, func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 1}), 1)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			s.foe.down = true
			honest := s.addNode(netip.MustParseAddrPort(tc.honest))
			c := honest.host.NewConn(plain)
			asked, longest, made := s.net.Now(), time.Duration(0), 0
			s.dial(honest, s.victim, c, nil)
			for i := range 6000 {
				for j := range tc.burst {
					s.connect(tc.from(tc.burst*i+j), uint32(tc.burst*i+j)+1)
				}
				s.acceptAll()
				s.exactly(500 * time.Microsecond)
				for honest.connect.Pop(new(Completion)) {
				}
				if c.State() == Established {
					longest = max(longest, time.Duration(s.net.Now()-asked))
					made++
					honest.eng.Drop(c)
					c, asked = honest.host.NewConn(plain), s.net.Now()
					s.dial(honest, s.victim, c, nil)
				}
			}
			t.Logf("%d connections, the slowest after %v", made, longest)
			if longest = max(longest, time.Duration(s.net.Now()-asked)); longest > time.Second {
				t.Errorf("a connection took %v", longest)
			}
			for end := s.net.Now() + int64(s.victim.host.limits.GiveUp+time.Second); s.net.Now() < end; {
				s.run(5 * time.Millisecond)
				s.acceptAll()
			}
			if got := len(s.victim.eng.unconfirmed); got != 0 {
				t.Errorf("%d holders of unconfirmed requests are left", got)
			}
		})
	}
}
