package xdp

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// Forged ICMP "packet too big" messages about a device's ports must change neither the kernel's path MTU nor the
// device's. The kernel ignores these messages because of an option of the guard, a kernel UDP socket that each device
// has (see ignoreICMPMTU). As a control, the test also forges a message about the port of an ordinary UDP socket. The
// kernel must believe this message.
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
		other := dialFrom(t, l, netip.AddrPortFrom(s.Local().Addr(), 0), to)
		const believed = 1400 // larger than the others, so the kernel does not replace a smaller one by it
		for _, forged := range []struct {
			port uint16
			mtu  int
		}{
			{o.Port, 1300}, {s.sourcePort(1), 1300}, {other.LocalAddr().(*net.UDPAddr).AddrPort().Port(), believed},
		} {
			onSide(t, l, lab.B, func() error {
				return labtest.ForgeTooBig(netip.AddrPortFrom(s.Local().Addr(), forged.port), to, forged.mtu)
			})
		}
		if got := awaitKernelMTU(t, l, netip.AddrPortFrom(s.Local().Addr(), 0), to); got != believed {
			t.Errorf("v6=%v: the kernel's path MTU is %d, want %d", v6, got, believed)
		}
		s.Release(id)
		if id, err = s.Resolve(to, 1); err != nil { // asks the kernel again
			t.Fatal(err)
		}
		if got, want := s.PathMTU(id), s.Caps().MaxPayload; got != want {
			t.Errorf("v6=%v: path MTU of %d bytes of payload, want %d", v6, got, want)
		}
		s.Release(id)
	}
}

// dialFrom opens another program's UDP socket on side A.
func dialFrom(t *testing.T, l *lab.Lab, from, to netip.AddrPort) (c *net.UDPConn) {
	t.Helper()
	onSide(t, l, lab.A, func() (err error) {
		c, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(to))
		return err
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// awaitKernelMTU waits until the kernel has lowered its path MTU below 1500, and returns it.
func awaitKernelMTU(t *testing.T, l *lab.Lab, from, to netip.AddrPort) (mtu int) {
	t.Helper()
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	if to.Addr().Is6() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c := dialFrom(t, l, from, to)
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var failed error
		err = raw.Control(func(fd uintptr) { mtu, failed = unix.GetsockoptInt(int(fd), level, option) })
		if err = errors.Join(err, failed, c.Close()); err != nil {
			t.Fatal(err)
		}
		if mtu < 1500 {
			return mtu
		}
		if time.Now().After(deadline) {
			t.Fatal("the kernel does not believe the message: the test tests nothing")
		}
	}
}
