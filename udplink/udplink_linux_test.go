package udplink

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

func TestParseControl(t *testing.T) {
	message := func(level, code int, data ...byte) []byte {
		b := make([]byte, unix.CmsgSpace(len(data)))
		b[0] = byte(unix.CmsgLen(len(data)))
		b[unix.SizeofCmsghdr-8] = byte(level)
		b[unix.SizeofCmsghdr-4] = byte(code)
		copy(b[unix.CmsgLen(0):], data)
		return b
	}
	tos := message(unix.IPPROTO_IP, unix.IP_TOS, 0xff)
	class := message(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 3, 0, 0, 0)
	lost := message(unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 7, 0, 0, 0)
	for _, tt := range []struct {
		name string
		in   []byte
		want control
	}{
		{"nothing", nil, control{}},
		{"IPv4", tos, control{ecn: 3}},
		{"IPv6", class, control{ecn: 3}},
		{"both", slices.Concat(lost, tos), control{ecn: 3, lost: 7, counted: true}},
		{"short", tos[:10], control{}},
		{"no data", message(unix.IPPROTO_IP, unix.IP_TOS), control{}},
		{"length 0", make([]byte, 32), control{}},
		{"length too long", slices.Concat([]byte{200}, tos[1:]), control{}},
	} {
		if got := parseControl(tt.in); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func FuzzParseControl(f *testing.F) {
	f.Add(make([]byte, 64))
	f.Fuzz(func(_ *testing.T, b []byte) { parseControl(b) })
}

func TestSockaddr(t *testing.T) {
	for _, s := range []string{"127.0.0.1:17473", "[::1]:1", "[fe80::1%lo]:65535"} {
		want := netip.MustParseAddrPort(s)
		name := makeSockaddr(want, 0)
		if got := name.addrPort(want.Addr().Zone()); got != want {
			t.Errorf("%v came back as %v", want, got)
		}
	}
}

// open opens a link in the namespace of one end of a lab.
func open(t *testing.T, l *lab.Lab, s lab.Side, addr netip.Addr, o Options) (u *Link) {
	t.Helper()
	err := l.Do(s, func() (err error) {
		u, err = Open(addr, o)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	return u
}

// untilPathMTU polls, because no event reports that the link has read the routing table again.
func untilPathMTU(t *testing.T, l *Link, p link.Path, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); l.PathMTU(p) != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("PathMTU = %d, want %d", l.PathMTU(p), want)
		}
	}
}

// Two interfaces have the same link-local address: the zone chooses one, by name or by index.
func TestPayloadOfAZone(t *testing.T) {
	world := labtest.New(t, lab.Options{MTU: 1500})
	a := linkLocal(t, world, lab.A)
	err := world.Do(lab.A, func() error {
		if err := labtest.AddAddress("lo", netip.PrefixFrom(a.WithZone(""), 64)); err != nil {
			return err
		}
		veth, err := net.InterfaceByName(lab.Interface)
		if err != nil {
			return err
		}
		for zone, want := range map[string]int{lab.Interface: 1452, strconv.Itoa(veth.Index): 1452, "lo": defaultPayload} {
			l, err := Open(a.WithZone(zone), Options{})
			if err != nil {
				return err
			}
			if got := l.Caps().MaxPayload; got != want {
				t.Errorf("MaxPayload = %d in zone %s, want %d", got, zone, want)
			}
			if err := l.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPathMTUFollowsTheInterface(t *testing.T) {
	world := labtest.New(t, lab.Options{MTU: 9000})
	a := open(t, world, lab.A, lab.A.Addr4(), Options{})
	if got := a.Caps().MaxPayload; got != defaultPayload {
		t.Errorf("MaxPayload = %d at MTU 9000, want %d", got, defaultPayload)
	}
	// From here the test runs outside of the namespace; the link stays inside.
	p := mustResolve(t, a, netip.AddrPortFrom(lab.B.Addr4(), DefaultPort))
	if err := world.SetMTU(1500); err != nil {
		t.Fatal(err)
	}
	send(t, a, p, string(make([]byte, 2000)))
	if s := a.Stats(); s.TxDropped != 1 {
		t.Errorf("stats = %+v, want one drop", s)
	}
	untilPathMTU(t, a, p, 1472)
	if _, err := a.Resolve(netip.MustParseAddrPort("192.0.2.1:1"), 0); !errors.Is(err, link.ErrUnreachable) {
		t.Errorf("resolve without a route: %v", err)
	}
}

func TestCongestionMarkIsSeen(t *testing.T) {
	for _, pair := range [][2]netip.Addr{{host1, host2}, {host6, host6}} {
		port := freePort(t, pair[0], pair[1])
		b := mustOpen(t, pair[1], Options{Port: port})
		ao := Options{Port: freePort(t, pair[0])}
		a := mustOpen(t, pair[0], ao)
		p := mustResolve(t, a, b.Local())
		send(t, a, p, "plain")
		bufs := make([]link.Buf, 4)
		if got := receive(t, b, bufs); got[0].Flags != 0 {
			t.Errorf("%v: flags = %v without a mark", pair[0], got[0].Flags)
		}
		b.Free(bufs[:1])
		level, code := unix.IPPROTO_IP, unix.IP_TOS
		if pair[0].Is6() {
			level, code = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		}
		if err := unix.SetsockoptInt(a.sock.(*batch).fd, level, code, ecnCE); err != nil {
			t.Fatal(err)
		}
		send(t, a, p, "marked")
		if got := receive(t, b, bufs); got[0].Flags != link.CE {
			t.Errorf("%v: flags = %v with a mark", pair[0], got[0].Flags)
		}
		b.Free(bufs[:1])
	}
}

func TestKernelDropsAreCounted(t *testing.T) {
	o := Options{Port: freePort(t, host1, host2), Buffer: 8 << 10}
	a, b := mustOpen(t, host1, o), mustOpen(t, host2, o)
	p := mustResolve(t, a, b.Local())
	const packets = 200
	for range packets {
		send(t, a, p, string(make([]byte, 1000)))
	}
	bufs := make([]link.Buf, 64)
	got := 0
	for n := b.Recv(bufs); n > 0; n = b.Recv(bufs) {
		b.Free(bufs[:n])
		got += n
	}
	send(t, a, p, "the count comes with the next packet")
	b.Free(receive(t, b, bufs))
	if s := b.Stats(); s.RxDropped == 0 || int(s.RxDropped)+got != packets {
		t.Errorf("%d received, %d dropped, %d sent", got, s.RxDropped, packets)
	}
}

// A forged ICMP "packet too big" message does not keep packets from leaving. The protocol finds the path MTU with its
// own probes.
func TestForgedTooBig(t *testing.T) {
	for _, addrs := range [][2]netip.Addr{{lab.A.Addr4(), lab.B.Addr4()}, {lab.A.Addr6(), lab.B.Addr6()}} {
		world := labtest.New(t, lab.Options{MTU: 1500})
		a, b := open(t, world, lab.A, addrs[0], Options{}), open(t, world, lab.B, addrs[1], Options{})
		p := mustResolve(t, a, b.Local())
		bufs := make([]link.Buf, 4)
		send(t, a, p, "there")
		b.Free(receive(t, b, bufs))
		forgeTooBig(t, world, a, b.Local(), 1300)
		const size = 1400
		send(t, a, p, string(make([]byte, size)))
		some := receive(t, b, bufs)
		if st := a.Stats(); st.TxDropped != 0 || len(some[0].Data) != size {
			t.Errorf("%v: %d bytes arrived, stats %+v", addrs[0], len(some[0].Data), st)
		}
		b.Free(some)
	}
}

// openWithoutPrivilege opens a link in the namespace of one end of a lab, on a thread without capabilities.
func openWithoutPrivilege(t *testing.T, l *lab.Lab, s lab.Side, addr netip.Addr) (u *Link) {
	t.Helper()
	err := l.Do(s, func() (err error) {
		labtest.WithCaps(t, nil, func() { u, err = Open(addr, Options{}) })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	return u
}

// forgeTooBig makes side B send a forged ICMP "packet too big" message to link a on side A. It returns when the kernel
// has lowered its path MTU.
func forgeTooBig(t *testing.T, world *lab.Lab, a *Link, peer netip.AddrPort, mtu int) {
	t.Helper()
	if err := world.Do(lab.B, func() error { return labtest.ForgeTooBig(a.Local(), peer, mtu) }); err != nil {
		t.Fatal(err)
	}
	learnt := func() bool {
		a.routes.mu.Lock()
		defer a.routes.mu.Unlock()
		got, err := a.routes.pathMTU(peer, a.routes.zone)
		return err == nil && got == mtu
	}
	for deadline := time.Now().Add(5 * time.Second); !learnt(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the kernel does not believe the message: the test tests nothing")
		}
	}
}

// A forged ICMP "packet too big" message does not make the packets of later connections smaller. The link needs no
// privilege for this.
func TestResolveAfterForgedTooBig(t *testing.T) {
	for _, addrs := range [][2]netip.Addr{{lab.A.Addr4(), lab.B.Addr4()}, {lab.A.Addr6(), lab.B.Addr6()}} {
		world := labtest.New(t, lab.Options{MTU: 9000})
		a := openWithoutPrivilege(t, world, lab.A, addrs[0])
		b := open(t, world, lab.B, addrs[1], Options{})
		old := mustResolve(t, a, b.Local())
		forgeTooBig(t, world, a, b.Local(), 1280)
		p := mustResolve(t, a, b.Local())
		a.paths.Get(old).stale.Store(true)
		for _, p := range []link.Path{p, old} {
			if got, want := a.PathMTU(p), a.Caps().MaxPayload; got != want {
				t.Errorf("%v: path MTU of %d bytes of payload, want %d", addrs[0], got, want)
			}
		}
		bufs := make([]link.Buf, 4)
		send(t, a, p, string(make([]byte, a.PathMTU(p))))
		some := receive(t, b, bufs)
		if st := a.Stats(); st.TxDropped != 0 || len(some[0].Data) != a.Caps().MaxPayload {
			t.Errorf("%v: %d bytes arrived, stats %+v", addrs[0], len(some[0].Data), st)
		}
		b.Free(some)
	}
}

// Without netlink the MTU of a route is unknown if the kernel's path MTU is small. The protocol then probes it.
func TestResolveWithoutNetlink(t *testing.T) {
	world := labtest.New(t, lab.Options{MTU: 9000})
	a := open(t, world, lab.A, lab.A.Addr4(), Options{})
	a.routes.reach = nil
	to := netip.AddrPortFrom(lab.B.Addr4(), DefaultPort)
	forgeTooBig(t, world, a, to, 1280)
	if got, want := a.PathMTU(mustResolve(t, a, to)), a.Caps().MaxPayload; got != want {
		t.Errorf("path MTU of %d bytes of payload, want %d", got, want)
	}
	if _, err := a.Resolve(netip.MustParseAddrPort("192.0.2.1:1"), 0); !errors.Is(err, link.ErrUnreachable) {
		t.Errorf("resolve without a route: %v", err)
	}
}

// A packet that is dropped because the send buffer is full is counted.
func TestFullSendBufferIsCounted(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	a := open(t, l, lab.A, lab.A.Addr4(), Options{Buffer: 8 << 10})
	a.sock.(*batch).gate.close()
	a.sock.(*batch).gate.reach = nil // every packet passes
	p := mustResolve(t, a, netip.AddrPortFrom(netip.MustParseAddr("10.73.0.77"), DefaultPort))
	for range 64 {
		send(t, a, p, string(make([]byte, 1400)))
	}
	if s := a.Stats(); s.TxFull == 0 || s.TxFull != s.TxDropped {
		t.Errorf("%d packets dropped, %d for which the send buffer was full", s.TxDropped, s.TxFull)
	}
}

// TestReservedPort: the error for a port that the program may not open says what to do.
func TestReservedPort(t *testing.T) {
	labtest.RequireRoot(t)
	labtest.WithCaps(t, nil, func() {
		l, err := Open(netip.MustParseAddr("127.0.0.1"), Options{Port: 80})
		if err == nil {
			_ = l.Close()
			t.Skip("any program may open port 80 here (net.ipv4.ip_unprivileged_port_start)")
		}
		if !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "port=") || !strings.Contains(err.Error(), "CAP_NET_BIND_SERVICE") {
			t.Error(err)
		}
	})
}
