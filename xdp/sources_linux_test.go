package xdp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/link"
)

// Both directions of a path use the same two ports. Entropy chooses the source port among those that the device has
// reserved.
func TestOneFlow(t *testing.T) {
	l := newLab(t, 1500, 1)
	da, db := openDevice(t, l, lab.A, small()), openDevice(t, l, lab.B, small())
	a, b := da.sockets[0], db.sockets[0]
	seen := make(map[uint16]bool)
	for entropy := range uint16(2 * sourcePortCount) {
		there, err := a.Resolve(b.Local(), entropy)
		if err != nil {
			t.Fatal(err)
		}
		awaitNeighbour(t, a, there)
		a.Send(message(t, a, there, 100, 1))
		in := receive(t, b)
		asked := b.Source(&in[0])
		seen[asked.Port()] = true
		awaitAnswer(t, db, a.Local().Addr())
		in[0].Path = link.PathReply
		b.Send(in)
		in = receive(t, a)
		if got := a.Source(&in[0]); got != b.Local() {
			t.Errorf("PathReply comes from %v, want %v", got, b.Local())
		}
		a.Free(in)
		back, err := b.ResolveFrom(b.Local().Addr(), asked, entropy)
		if err != nil {
			t.Fatal(err)
		}
		b.Send(message(t, b, back, 100, 1))
		in = receive(t, a)
		if got := a.Source(&in[0]); got != b.Local() {
			t.Errorf("a path from ResolveFrom comes from %v, want %v", got, b.Local())
		}
		a.Free(in)
		a.Release(there)
		b.Release(back)
	}
	if len(seen) != sourcePortCount || seen[DefaultPort] {
		t.Errorf("%d source ports, want %d that are not the service port: %v", len(seen), sourcePortCount, seen)
	}
}

// No program can bind a source port of a device, at any address and interface, and a device takes no port of a program.
// The ports are free again after Close.
func TestSourcePortsAreReserved(t *testing.T) {
	l := newLab(t, 1500, 1)
	const first, last = 40000, 40000 + sourcePortCount + 3 // the kernel chooses among these
	onSide(t, l, lab.A, func() error { return portRange(first, last) })
	theirs := make(map[uint16]bool)
	for i := range uint16(4) {
		at := netip.AddrPortFrom(lab.A.Addr4(), first+5*i)
		if i%2 == 1 {
			at = netip.AddrPortFrom(netip.IPv6Loopback(), at.Port())
		}
		_ = program(t, l, at)
		theirs[at.Port()] = true
	}
	d := openDevice(t, l, lab.A, small())
	for _, port := range d.sources.numbers {
		if port < first || port > last || theirs[port] {
			t.Errorf("the device has port %d, of the program", port)
		}
		for _, addr := range []netip.Addr{lab.A.Addr4(), lab.A.Addr6(), netip.IPv4Unspecified(), netip.MustParseAddr("127.0.0.1")} {
			if err := bindOn(l, netip.AddrPortFrom(addr, port)); !errors.Is(err, unix.EADDRINUSE) {
				t.Errorf("bind to %v port %d: %v, want %v", addr, port, err, unix.EADDRINUSE)
			}
		}
	}
	onSide(t, l, lab.A, func() error {
		if p := (&sourcePorts{}); p.reserve(1) == nil {
			t.Errorf("a port was reserved, although all of the range are in use: %v", p.numbers)
		}
		return nil
	})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, port := range d.sources.numbers {
		if err := bindOn(l, netip.AddrPortFrom(lab.A.Addr4(), port)); err != nil {
			t.Errorf("after Close: %v", err)
		}
	}
}

// portRange sets the range of ports from which the kernel chooses.
func portRange(first, last int) error {
	return os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", fmt.Appendf(nil, "%d %d", first, last), 0)
}

// The default service port stays free for another adapter, even if the kernel would give it to programs.
func TestDefaultPortIsNoSourcePort(t *testing.T) {
	l := newLab(t, 1500, 1)
	onSide(t, l, lab.A, func() error {
		if err := portRange(DefaultPort, DefaultPort+sourcePortCount); err != nil {
			return err
		}
		var p sourcePorts
		defer p.close()
		if err := p.reserve(sourcePortCount); err != nil {
			return err
		}
		if slices.Contains(p.numbers, DefaultPort) {
			t.Errorf("the default port is reserved as a source port: %v", p.numbers)
		}
		c, err := net.ListenUDP("udp", &net.UDPAddr{Port: DefaultPort})
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func bindOn(l *lab.Lab, at netip.AddrPort) error {
	return l.Do(lab.A, func() error {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

// Packets to a source port that the program passes to the kernel, such as fragments, fill no receive buffer and cause no
// port unreachable message.
func TestReservedPortTakesNothing(t *testing.T) {
	l := newLab(t, 1500, 1)
	onSide(t, l, lab.A, func() error {
		var p sourcePorts
		if err := p.reserve(1); err != nil {
			return err
		}
		defer p.close()
		c, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(p.numbers[0])})
		if err != nil {
			return err
		}
		defer c.Close()
		for range 100 {
			if _, err := c.Write(make([]byte, 1000)); err != nil { // a port without a socket answers with ECONNREFUSED
				return err
			}
		}
		waiting, err := unix.IoctlGetInt(p.fds[0], unix.SIOCINQ)
		if waiting != 0 {
			t.Errorf("%d bytes wait in the reserving socket", waiting)
		}
		return err
	})
}

// Anybody can send to a source port. Such a packet is received like one to the service port, and an answer to it leaves
// from that port, so a connected socket of the kernel takes it.
func TestForgedToSourcePorts(t *testing.T) {
	l := newLab(t, 1500, 1)
	d := openDevice(t, l, lab.A, small())
	s := d.sockets[0]
	for _, port := range append([]uint16{DefaultPort}, d.sources.numbers...) {
		var c *net.UDPConn
		onSide(t, l, lab.B, func() (err error) {
			c, err = net.DialUDP("udp", nil, &net.UDPAddr{IP: lab.A.Addr4().AsSlice(), Port: int(port)})
			return err
		})
		if _, err := c.Write([]byte("forged")); err != nil {
			t.Fatal(err)
		}
		in := receive(t, s)
		awaitAnswer(t, d, lab.B.Addr4())
		in[0].Path = link.PathReply
		s.Send(in)
		b := make([]byte, 100)
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(b); err != nil || string(b[:n]) != "forged" {
			t.Errorf("port %d: the answer is %q, %v", port, b[:n], err)
		}
		_ = c.Close()
	}
	settled(t, s)
}

// A packet from port 0 gets no answer, because nobody receives there.
func TestNoAnswerToPort0(t *testing.T) {
	k := newFake(t, 1500)
	bufs := make([]link.Buf, maxSegments)
	in := packetFor(t, "10.0.0.2", "10.0.0.1", payloadOf(100))
	be.PutUint16(in[ethSize+v4Size+udpSrc:], 0)
	k.deliver(t, in)
	if n := k.s.Recv(bufs); n != 1 {
		t.Fatalf("%d Bufs", n)
	}
	bufs[0].Path = link.PathReply
	k.s.Send(bufs[:1])
	if d := k.s.Stats().TxDropped; d != 1 || len(k.sent) != 0 {
		t.Errorf("%d dropped, %d sent, want 1 and 0", d, len(k.sent))
	}
	conserve(t, k.s)
}
