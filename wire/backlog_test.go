package wire

import (
	"fmt"
	"net/netip"
	"testing"
)

// A single address must get nearly all places of a large backlog, and all places of a small one.
func TestBacklogAlone(t *testing.T) {
	one := netip.MustParseAddr("192.0.2.1")
	for places, want := range map[int]int{1: 1, 2: 2, 6: 6, 7: 7, 8: 7, 16: 14, 64: 56, 1024: 896} {
		b, got := NewBacklog(places), 0
		for b.Take(one) {
			got++
		}
		if got != want || got != alone(backlogShare, places) {
			t.Errorf("%d of %d places, want %d", got, places, want)
		}
		for range got {
			b.Give(one)
		}
		if b.quota.used != 0 || len(b.quota.held) != 0 {
			t.Errorf("%d places of %d holders left", b.quota.used, len(b.quota.held))
		}
	}
}

// If one address sends many requests, another address must still get a place, whether or not it is in the same network.
// If many addresses of a network send requests, an address of another network must still get a place.
func TestBacklogNewcomer(t *testing.T) {
	const places = 16
	network := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }
	for _, tc := range []struct {
		name     string
		newcomer netip.Addr
		foes     int
	}{
		{"same network", network(200), 1},
		{"IPv4 mapped", netip.MustParseAddr("::ffff:192.0.2.200"), 1},
		{"other network", netip.MustParseAddr("198.51.100.1"), 1},
		{"IPv6", netip.MustParseAddr("2001:db8::1"), 1},
		{"many addresses", netip.MustParseAddr("198.51.100.1"), 2},
		{"a crowd", netip.MustParseAddr("198.51.100.1"), 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := NewBacklog(places)
			for i := range 100 {
				b.Take(network(i % tc.foes))
			}
			if !b.Take(tc.newcomer) {
				t.Fatalf("no place beside %d of %d", b.quota.used, places)
			}
			b.Give(tc.newcomer)
			b.Give(network(0))
			if !b.Take(network(0)) {
				t.Error("a place that was given back is not free")
			}
		})
	}
}

// Reserved places must stay reserved after Resize, and must count against the new number.
func TestBacklogResize(t *testing.T) {
	from := func(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("10.0.%d.1", i)) }
	b := NewBacklog(4)
	for i := range 4 {
		if !b.Take(from(i)) {
			t.Fatalf("no place %d", i)
		}
	}
	if b.Take(from(9)) {
		t.Error("a fifth place of 4")
	}
	if b.Resize(5); !b.Take(from(9)) || b.Take(from(10)) {
		t.Error("not 5 places")
	}
	if b.Give(from(9)); !b.Take(from(10)) {
		t.Error("a place that was given back is not free")
	}
}
