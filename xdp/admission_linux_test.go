package xdp

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/link"
)

// Packets are dropped and counted if they claim an impossible source or are not addressed to us. Their frames return to
// the pool.
func TestSourcesThatCannotBe(t *testing.T) {
	for _, tc := range []struct {
		src, dst string
		good     bool
	}{
		{"10.0.0.2", "10.0.0.1", true}, {"192.0.2.255", "10.0.0.1", true}, {"240.0.0.1", "10.0.0.1", true},
		{"10.0.0.2", "10.0.0.9", false}, // for another host
		{"10.0.0.1", "10.0.0.1", false}, // LAND attack: our own address as source
		{"10.0.0.255", "10.0.0.1", false}, {"255.255.255.255", "10.0.0.1", false},
		{"224.0.0.1", "10.0.0.1", false}, {"239.255.255.255", "10.0.0.1", false},
		{"127.0.0.1", "10.0.0.1", false}, {"127.9.9.9", "10.0.0.1", false}, {"0.0.0.0", "10.0.0.1", false},
		{"fd00::2", "fd00::1", true}, {"fe80::2", "fd00::1", true}, {"::1:0:0:1", "fd00::1", true},
		{"fd00::2", "fd00::9", false}, {"fd00::1", "fd00::1", false},
		{"ff02::1", "fd00::1", false}, {"ff0e::1:2", "fd00::1", false},
		{"::1", "fd00::1", false}, {"::", "fd00::1", false}, {"::ffff:10.0.0.2", "fd00::1", false},
	} {
		k := newFake(t, 1500)
		k.deliver(t, packetFor(t, tc.src, tc.dst, payloadOf(100)))
		bufs := make([]link.Buf, maxSegments)
		n := k.s.Recv(bufs)
		if st := k.s.Stats(); (n == 1) != tc.good || (st.RxInvalid == 0) != tc.good {
			t.Errorf("from %s to %s: %d Bufs, %d invalid", tc.src, tc.dst, n, st.RxInvalid)
		}
		k.s.Free(bufs[:n])
		if k.s.pool.count[isHeld] != 0 {
			t.Errorf("from %s to %s: frames %v", tc.src, tc.dst, k.s.pool.count)
		}
		conserve(t, k.s)
	}
}

// Packets with wrong headers are dropped and counted. A wrong UDP checksum is accepted, because packets over veth and
// virtio have only a partial checksum.
func TestHeadersThatAreDropped(t *testing.T) {
	change := func(f func(ip []byte), sum bool) []byte {
		b := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(100))
		f(b[ethSize:])
		if sum {
			resum(b)
		}
		return b
	}
	v6 := packetFor(t, "fd00::2", "fd00::1", payloadOf(100))
	v6[ethSize+v6Size+udpSum]++
	hopless := packetFor(t, "fd00::2", "fd00::1", payloadOf(100))
	hopless[ethSize+v6Hops] = 0
	good := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(100))
	for name, tc := range map[string]struct {
		packet []byte
		good   bool
	}{
		"UDP checksum":      {change(func(ip []byte) { ip[v4Size+udpSum] = 0x5a }, true), true},
		"UDP checksum, v6":  {v6, true},
		"a priority":        {tagged(good, 0xe000), true},
		"TTL 1":             {change(func(ip []byte) { ip[v4TTL] = 1 }, true), true},
		"TTL 0":             {change(func(ip []byte) { ip[v4TTL] = 0 }, true), false},
		"hop limit 0":       {hopless, false},
		"a VLAN":            {tagged(good, 7), false},
		"IPv4 checksum":     {change(func(ip []byte) { ip[v4Sum] ^= 1 }, false), false},
		"a changed address": {change(func(ip []byte) { ip[v4Src+3] = 3 }, false), false},
	} {
		k := newFake(t, 1500)
		k.deliver(t, tc.packet)
		n := k.s.Recv(make([]link.Buf, maxSegments))
		if st := k.s.Stats(); (n == 1) != tc.good || (st.RxInvalid == 0) != tc.good {
			t.Errorf("%s: %d Bufs, %d invalid", name, n, st.RxInvalid)
		}
	}
}

func TestBroadcasts(t *testing.T) {
	var subnets []netip.Prefix
	for _, s := range []string{"10.0.0.1/24", "172.16.5.4/12", "192.0.2.1/31", "192.0.2.9/32", "fd00::1/64", "198.51.100.129/25"} {
		subnets = append(subnets, netip.MustParsePrefix(s))
	}
	got := broadcasts(subnets)
	for i, want := range []string{"10.0.0.255", "172.31.255.255", "198.51.100.255"} {
		if i >= len(got) || got[i].String() != want {
			t.Fatalf("got %v, want %s in place %d", got, want, i)
		}
	}
	if len(got) != 3 {
		t.Errorf("got %v", got)
	}
}
