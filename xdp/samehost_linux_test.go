package xdp

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/link"
)

// A program on the device's own host exchanges packets with it, from each address of the host, and to each address that
// the device serves. The packets do not cross the interface.
func TestSameHost(t *testing.T) {
	for _, mtu := range []int{1500, 9000} {
		l := newLab(t, mtu, 2)
		s := openDevice(t, l, lab.A, small()).sockets[0]
		for _, c := range []struct{ from, to string }{
			{"10.73.0.1", "10.73.0.1"}, {"127.0.0.1", "10.73.0.1"}, {"127.0.0.2", "10.73.0.1"},
			{lab.A.Addr6().String(), lab.A.Addr6().String()}, {"::1", lab.A.Addr6().String()},
		} {
			from, to := netip.MustParseAddr(c.from), netip.MustParseAddr(c.to)
			conn := program(t, l, netip.AddrPortFrom(from, 0))
			local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
			question := bytes.Repeat([]byte("question"), mtu/10)
			if _, err := conn.WriteToUDPAddrPort(question, netip.AddrPortFrom(to, DefaultPort)); err != nil {
				t.Fatal(err)
			}
			in := receive(t, s)
			if s.Source(&in[0]) != local || s.Target(&in[0]) != to || !bytes.Equal(payload(in), question) {
				t.Errorf("%v to %v: %d bytes from %v to %v", local, to, len(payload(in)), s.Source(&in[0]), s.Target(&in[0]))
			}
			in[0].Path, in[0].Port = link.PathReply, local.Port()
			s.Send(in)
			hears(t, conn, question, to)

			path, err := s.ResolveFrom(to, local, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Destination(path); got != local {
				t.Errorf("the path leads to %v, want %v", got, local)
			}
			m := message(t, s, path, mtu/2, 3)
			want := payload(m)
			s.Send(m)
			hears(t, conn, want, to)
			s.Release(path)
		}
		settled(t, s)
	}
}

// program opens the socket of a program on side A.
func program(t *testing.T, l *lab.Lab, at netip.AddrPort) (conn *net.UDPConn) {
	t.Helper()
	onSide(t, l, lab.A, func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	})
	t.Cleanup(func() { conn.Close() })
	return conn
}

// receive waits for one packet.
func receive(t *testing.T, s *Socket) []link.Buf {
	t.Helper()
	bufs := make([]link.Buf, maxSegments)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); s.Wait(time.Millisecond) {
		if n := s.Recv(bufs); n > 0 {
			return bufs[:n]
		}
	}
	t.Fatal("nothing arrives")
	return nil
}

func payload(bufs []link.Buf) (all []byte) {
	for i := range bufs {
		all = append(all, bufs[i].Data...)
	}
	return all
}

// hears waits for a packet of the device at a program's socket.
func hears(t *testing.T, conn *net.UDPConn, want []byte, from netip.Addr) {
	t.Helper()
	b := make([]byte, 1<<16)
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	n, sender, err := conn.ReadFromUDPAddrPort(b)
	if err != nil || !bytes.Equal(b[:n], want) || sender != netip.AddrPortFrom(from, DefaultPort) {
		t.Errorf("%d bytes from %v, %v; want %d from %v", n, sender, err, len(want), from)
	}
}

// A packet that the program passes to the kernel, because it has IP options, does not come back through the guard: only
// programs of this host are served there. Neither does one that arrives before the redirect.
func TestGuardIgnoresTheNetwork(t *testing.T) {
	l := newLab(t, 1500, 1)
	d := openDevice(t, l, lab.A, small())
	s := d.sockets[0]
	if err := d.steer.Unregister(0); err != nil { // the kernel now gets what the device got
		t.Fatal(err)
	}
	for range 10 {
		knock(t, l, lab.A.Addr4())
	}
	near := program(t, l, netip.AddrPortFrom(lab.A.Addr4(), 0))
	if _, err := near.WriteToUDPAddrPort([]byte("near"), s.Local()); err != nil {
		t.Fatal(err)
	}
	if in := receive(t, s); string(payload(in)) != "near" {
		t.Errorf("%q came through the guard", payload(in))
	}
	if c, err := d.Counters(); err != nil || c.PassedNoSocket < 10 {
		t.Errorf("%+v, %v: the packets of the network did not reach the kernel", c, err)
	}
}

// An address whose port another program has stays with that program, and is reported.
func TestAddressOfAnotherProgram(t *testing.T) {
	l := newLab(t, 1500, 1)
	conn := program(t, l, netip.AddrPortFrom(lab.A.Addr6(), DefaultPort))
	d := openDevice(t, l, lab.A, small())
	w := &witness{heard: make(chan string, 100), ended: make(chan error, 1)}
	d.Watch(w)
	w.hears(t, "is not served: another program has its UDP port")
	knock(t, l, lab.A.Addr6())
	b := make([]byte, 100)
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(b); err != nil || string(b[:n]) != "knock" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if d.sockets[0].owns(lab.A.Addr6()) {
		t.Error("the device owns the address")
	}
}

// More packets than the mailbox has room for are dropped, and do not block the reader or the owner.
func TestMailboxIsBounded(t *testing.T) {
	l := newLab(t, 1500, 1)
	d := openDevice(t, l, lab.A, small())
	s := d.sockets[0]
	from := netip.MustParseAddrPort("127.0.0.1:9")
	for range 2 * mailSlots {
		s.deliver([]byte("packet"), from, lab.A.Addr4())
	}
	if n := s.mail.waiting.Load(); n != mailSlots {
		t.Errorf("%d packets wait", n)
	}
	got := 0
	bufs := make([]link.Buf, 64)
	for n := s.Recv(bufs); n > 0; n = s.Recv(bufs) {
		got += n
		s.Free(bufs[:n])
	}
	if got != mailSlots || s.Stats().RxDropped != mailSlots {
		t.Errorf("%d packets received, %d counted as dropped", got, s.Stats().RxDropped)
	}
	settled(t, s)
}
