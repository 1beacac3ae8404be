package xdp

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// A forged ICMP "packet too big" message does not change the path MTU. The device reserves its port with a kernel UDP
// socket, the guard. By default the kernel would accept the forged message for the guard and lower the path MTU. A
// socket option of the guard prevents this (see ignoreICMPMTU).
func TestForgedTooBig(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, 1500, 1)
		o := DefaultOptions()
		peer := lab.B.Addr4()
		if v6 {
			o.Addr, peer = lab.A.Addr6(), lab.B.Addr6()
		}
		d := openDevice(t, l, lab.A, o)
		s := d.sockets[0]
		to := netip.AddrPortFrom(peer, o.Port)
		id, err := s.Resolve(to, 1)
		if err != nil {
			t.Fatal(err)
		}
		awaitNeighbour(t, s, id)
		for _, port := range []uint16{o.Port, entropyPort(1)} {
			onSide(t, l, lab.B, func() error {
				return labtest.ForgeTooBig(netip.AddrPortFrom(s.Local().Addr(), port), to, 1300)
			})
		}
		awaitAnswer(t, d, peer)
		s.Release(id)
		if id, err = s.Resolve(to, 1); err != nil { // asks the kernel again
			t.Fatal(err)
		}
		if got, want := s.PathMTU(id), s.Caps().MaxPayload; got != want {
			t.Errorf("v6=%v: path MTU of %d bytes of payload, want %d", v6, got, want)
		}
	}
}
