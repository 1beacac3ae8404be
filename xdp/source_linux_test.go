package xdp

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/link"
)

// Source returns the source address of a packet with and without a VLAN tag, and allocates no memory.
func TestSource(t *testing.T) {
	for _, tc := range []struct {
		src, dst string
		tagged   bool
	}{
		{"10.0.0.2", "10.0.0.1", false}, {"10.0.0.2", "10.0.0.1", true},
		{"fd00::2", "fd00::1", false}, {"fd00::2", "fd00::1", true},
	} {
		k := newFake(t, 1500)
		in := packetFor(t, tc.src, tc.dst, payloadOf(64))
		if tc.tagged {
			in = tagged(in, 0)
		}
		k.deliver(t, in)
		bufs := make([]link.Buf, maxSegments)
		if n := k.s.Recv(bufs); n != 1 {
			t.Fatalf("%+v: %d Bufs", tc, n)
		}
		want := netip.AddrPortFrom(netip.MustParseAddr(tc.src), 49152)
		if got := k.s.Source(&bufs[0]); got != want {
			t.Errorf("%+v: %v, want %v", tc, got, want)
		}
		if got := k.s.Target(&bufs[0]); got.String() != tc.dst {
			t.Errorf("%+v: the target is %v", tc, got)
		}
		if n := testing.AllocsPerRun(100, func() { k.s.Source(&bufs[0]) }); n != 0 {
			t.Errorf("%+v: %v allocations, want 0", tc, n)
		}
		k.s.Free(bufs[:1])
		if got := k.s.Source(&bufs[0]); got.IsValid() {
			t.Errorf("%+v: %v of a frame that was freed", tc, got)
		}
	}
}

// BenchmarkSource measures a comparison of a packet's source with the expected address.
func BenchmarkSource(b *testing.B) {
	for name, hosts := range map[string][2]string{"v4": {"10.0.0.2", "10.0.0.1"}, "v6": {"fd00::2", "fd00::1"}} {
		b.Run(name, func(b *testing.B) {
			k := newFake(b, 1500)
			k.deliver(b, packetFor(b, hosts[0], hosts[1], payloadOf(64)))
			bufs := make([]link.Buf, maxSegments)
			if n := k.s.Recv(bufs); n != 1 {
				b.Fatalf("%d Bufs", n)
			}
			var l link.Link = k.s
			want := netip.MustParseAddr(hosts[0])
			b.ReportAllocs()
			for b.Loop() {
				if l.Source(&bufs[0]).Addr() != want {
					b.Fatal("another source")
				}
			}
		})
	}
}
