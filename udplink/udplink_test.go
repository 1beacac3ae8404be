package udplink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

var (
	host1 = netip.MustParseAddr("127.0.0.1")
	host2 = netip.MustParseAddr("127.0.0.2")
	host6 = netip.IPv6Loopback()
	host3 = netip.AddrFrom4([4]byte{127, 73, byte(os.Getpid() >> 8), byte(os.Getpid())}) // whose default port is free
)

// freePort returns a port that is free at all of these addresses.
func freePort(t testing.TB, addrs ...netip.Addr) uint16 {
	t.Helper()
	for range 100 {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addrs[0], 0)))
		if err != nil {
			t.Skipf("no address %v here: %v", addrs[0], err)
		}
		port := c.LocalAddr().(*net.UDPAddr).AddrPort().Port()
		free := true
		for _, a := range addrs[1:] {
			if a == addrs[0] {
				continue
			}
			other, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, port)))
			if free = free && err == nil; err == nil {
				_ = other.Close()
			}
		}
		_ = c.Close()
		if free {
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

func mustOpen(t testing.TB, addr netip.Addr, o Options) *Link {
	t.Helper()
	l, err := Open(addr, o)
	if errors.Is(err, link.ErrBusy) || err == nil {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		return l
	}
	t.Skipf("cannot bind %v here: %v", addr, err)
	return nil
}

func mustResolve(t testing.TB, l *Link, to netip.AddrPort) link.Path {
	t.Helper()
	p, err := l.Resolve(to, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends payloads on one path in one batch.
func send(t testing.TB, l *Link, p link.Path, payloads ...string) {
	t.Helper()
	bufs := make([]link.Buf, len(payloads))
	if n := l.Alloc(bufs); n != len(bufs) {
		t.Fatalf("Alloc = %d, want %d", n, len(bufs))
	}
	for i := range bufs {
		bufs[i].Data = bufs[i].Data[:copy(bufs[i].Data, payloads[i])]
		bufs[i].Path = p
	}
	l.Send(bufs)
}

// receive waits for at least one packet.
func receive(t testing.TB, l *Link, bufs []link.Buf) []link.Buf {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		if n := l.Recv(bufs); n > 0 {
			return bufs[:n]
		}
		l.Wait(time.Second)
	}
	t.Fatal("nothing arrived in 5 s")
	return nil
}

// bothSockets runs a test with the system's socket and with the portable one.
func bothSockets(t *testing.T, test func(t *testing.T, o Options)) {
	for _, portable := range []bool{false, true} {
		t.Run(fmt.Sprintf("portable=%v", portable), func(t *testing.T) {
			test(t, Options{portable: portable})
		})
	}
}

func TestThereAndBack(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		for _, pair := range [][2]netip.Addr{{host1, host2}, {host6, host6}} {
			ao, bo := o, o
			ao.Port = freePort(t, pair[0], pair[1])
			bo.Port = ao.Port
			if pair[0] == pair[1] {
				bo.Port = freePort(t, pair[1])
			}
			a, b := mustOpen(t, pair[0], ao), mustOpen(t, pair[1], bo)
			send(t, a, mustResolve(t, a, b.Local()), "one", "", "three")
			var got []string
			bufs := make([]link.Buf, 8)
			for len(got) < 3 {
				some := receive(t, b, bufs)
				for i := range some {
					got = append(got, string(some[i].Data))
					if from := b.Source(&some[i]); from != a.Local() {
						t.Errorf("Source = %v, want %v", from, a.Local())
					}
					some[i].Path = link.PathReply
				}
				b.Send(some)
			}
			if strings.Join(got, ",") != "one,,three" {
				t.Errorf("got %q", got)
			}
			for back := 0; back < 3; {
				some := receive(t, a, bufs)
				back += len(some)
				a.Free(some)
			}
			if tx, rx := a.Stats(), b.Stats(); tx.TxPackets != 3 || tx.TxBytes != 8 || rx.RxPackets != 3 || rx.TxPackets != 3 {
				t.Errorf("stats: a %+v, b %+v", tx, rx)
			}
		}
	})
}

// A reply with a port goes to that port of the requesting host.
func TestReplyToAnotherPort(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		for _, host := range []netip.Addr{host1, host6} {
			var links [3]*Link
			for i := range links {
				o.Port = freePort(t, host)
				links[i] = mustOpen(t, host, o)
			}
			a, b, other := links[0], links[1], links[2]
			send(t, a, mustResolve(t, a, b.Local()), "question")
			bufs := make([]link.Buf, 4)
			some := receive(t, b, bufs)
			some[0].Path, some[0].Port = link.PathReply, other.Local().Port()
			b.Send(some)
			some = receive(t, other, bufs)
			if got := string(some[0].Data); got != "question" || some[0].Port != 0 {
				t.Errorf("%v: %q, port %d", host, got, some[0].Port)
			}
			if from := other.Source(&some[0]); from != b.Local() {
				t.Errorf("%v: the answer came from %v, want %v", host, from, b.Local())
			}
			other.Free(some)
			if n := a.Recv(bufs); n != 0 {
				t.Errorf("%v: the port that asked received %d packets", host, n)
			}
		}
	})
}

func TestFramesComeBack(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		o.Frames, o.Port = 8, freePort(t, host1, host2)
		a, b := mustOpen(t, host1, o), mustOpen(t, host2, o)
		p := mustResolve(t, a, b.Local())
		bufs := make([]link.Buf, 16)
		for range 50 {
			send(t, a, p, "a", "b", "c", "d")
			for n := 0; n < 4; {
				some := receive(t, b, bufs)
				n += len(some)
				b.Free(some)
			}
		}
		if n := a.Alloc(bufs); n != 8 {
			t.Errorf("Alloc = %d of 8 frames", n)
		}
		a.Free(bufs[:8])
	})
}

func TestWithoutReceiveFramesPacketsWaitOrDrop(t *testing.T) {
	o := Options{Frames: 2, Port: freePort(t, host1, host2), NoOffload: true}
	a, b := mustOpen(t, host1, o), mustOpen(t, host2, o)
	p := mustResolve(t, a, b.Local())
	held := make([]link.Buf, 2)
	send(t, a, p, "1", "2")
	for n := 0; n < 2; {
		n += len(receive(t, b, held[n:]))
	}
	send(t, a, p, "3")
	if n := b.Recv(make([]link.Buf, 4)); n != 0 {
		t.Errorf("Recv = %d without a frame", n)
	}
	b.Free(held)
}

func TestTooLongIsInvalid(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		o.Port = freePort(t, host1, host2)
		a := mustOpen(t, host1, o)
		o.MaxPayload = 100
		b := mustOpen(t, host2, o)
		p := mustResolve(t, a, b.Local())
		send(t, a, p, strings.Repeat("x", 100), strings.Repeat("y", 101), "z")
		bufs := make([]link.Buf, 4)
		var sizes []int
		for len(sizes) < 2 {
			some := receive(t, b, bufs)
			for i := range some {
				sizes = append(sizes, len(some[i].Data))
			}
			b.Free(some)
		}
		if sizes[0] != 100 || sizes[1] != 1 || b.Stats().RxInvalid != 1 {
			t.Errorf("sizes %v, stats %+v", sizes, b.Stats())
		}
	})
}

func TestNobodyListens(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		o.Port = freePort(t, host1, host2)
		a := mustOpen(t, host1, o)
		p := mustResolve(t, a, netip.AddrPortFrom(host2, o.Port))
		for range 10 {
			send(t, a, p, "anybody?")
		}
		if n := a.Recv(make([]link.Buf, 4)); n != 0 {
			t.Errorf("Recv = %d", n)
		}
		if s := a.Stats(); s.TxPackets+s.TxDropped != 10 {
			t.Errorf("stats = %+v, want 10 packets sent or dropped", s)
		}
	})
}

func TestReleasedPathDrops(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		o.Port = freePort(t, host1, host2)
		a := mustOpen(t, host1, o)
		p := mustResolve(t, a, netip.AddrPortFrom(host2, o.Port))
		a.Release(p)
		send(t, a, p, "lost")
		send(t, a, 1<<30, "lost")
		send(t, a, link.PathReply, "lost")
		if s := a.Stats(); s.TxDropped != 3 || s.TxPackets != 0 {
			t.Errorf("stats = %+v, want 3 dropped", s)
		}
		if got := a.PathMTU(p); got != 0 {
			t.Errorf("PathMTU of a released path = %d", got)
		}
	})
}

func TestOpenErrors(t *testing.T) {
	port := freePort(t, host1)
	mustOpen(t, host1, Options{Port: port})
	for _, tt := range []struct {
		name string
		addr netip.Addr
		o    Options
		want string
		is   error
	}{
		{"busy", host1, Options{Port: port}, "port=", link.ErrBusy},
		{"wildcard", netip.IPv4Unspecified(), Options{}, "wildcard", nil},
		{"IPv6 wildcard", netip.IPv6Unspecified(), Options{}, "wildcard", nil},
		{"no address", netip.Addr{}, Options{}, "one address", nil},
		{"foreign", netip.MustParseAddr("192.0.2.1"), Options{}, "not an address of this host", nil},
		{"options", host1, Options{MaxPayload: -1, Frames: 1}, "Frames 1", nil},
	} {
		for _, portable := range []bool{false, true} {
			tt.o.portable = portable
			l, err := Open(tt.addr, tt.o)
			if err == nil {
				_ = l.Close()
				t.Errorf("%s: no error", tt.name)
				continue
			}
			if !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
		}
	}
}

func TestResolveErrors(t *testing.T) {
	l := mustOpen(t, host1, Options{Port: freePort(t, host1)})
	for _, to := range []string{"[::1]:1", "0.0.0.0:1", "127.0.0.2:0"} {
		if _, err := l.Resolve(netip.MustParseAddrPort(to), 0); !errors.Is(err, link.ErrUnreachable) {
			t.Errorf("%s: %v, want unreachable", to, err)
		}
	}
	if p := mustResolve(t, l, netip.MustParseAddrPort("[::ffff:127.0.0.2]:9")); p == link.PathReply {
		t.Error("the path is PathReply")
	}
}

func TestCaps(t *testing.T) {
	l := mustOpen(t, host1, Options{Port: freePort(t, host1)})
	c := l.Caps()
	if c.MaxPayload != c.FrameSize || c.MaxPayload > defaultPayload || c.Segments != 1 || c.Mode != "udp" {
		t.Errorf("Caps = %+v", c)
	}
	if p := mustResolve(t, l, netip.AddrPortFrom(host2, 9)); l.PathMTU(p) != c.MaxPayload {
		t.Errorf("PathMTU = %d, want %d", l.PathMTU(p), c.MaxPayload)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		o.Port = freePort(t, host1, host2)
		a, b := mustOpen(t, host1, o), mustOpen(t, host2, o)
		p := mustResolve(t, a, b.Local())
		gone := mustResolve(t, a, b.Local())
		a.Release(gone)
		bufs := make([]link.Buf, 8)
		cycle := func() {
			n := a.Alloc(bufs)
			for i := range bufs[:n] {
				bufs[i].Path, bufs[i].Data = p, bufs[i].Data[:64]
			}
			bufs[0].Path = gone // makes Send drop the packet
			a.Send(bufs[:n])
			for got := 0; got < 7; {
				n := b.Recv(bufs)
				for i := range bufs[:n] {
					_ = b.Source(&bufs[i])
				}
				b.Free(bufs[:n])
				got += n
			}
		}
		if got := testing.AllocsPerRun(200, cycle); got != 0 {
			t.Errorf("%v allocations per batch, want 0", got)
		}
	})
}

// If DefaultPort is in use and no port is requested, a second link on the address gets a free port. A port that is
// requested and in use is an error.
func TestPortThatIsTaken(t *testing.T) {
	bothSockets(t, func(t *testing.T, o Options) {
		a := mustOpen(t, host3, o)
		b := mustOpen(t, host3, o)
		if a.Local().Port() != DefaultPort || b.Local().Port() == DefaultPort || b.Local().Port() == 0 {
			t.Fatalf("ports %d and %d", a.Local().Port(), b.Local().Port())
		}
		send(t, a, mustResolve(t, a, b.Local()), "there")
		bufs := make([]link.Buf, 4)
		some := receive(t, b, bufs)
		if from := b.Source(&some[0]); from != a.Local() {
			t.Errorf("Source = %v, want %v", from, a.Local())
		}
		some[0].Path = link.PathReply
		b.Send(some)
		some = receive(t, a, bufs)
		if from := a.Source(&some[0]); from != b.Local() {
			t.Errorf("Source = %v, want %v", from, b.Local())
		}
		a.Free(some)
		o.Port = DefaultPort
		if l, err := Open(host3, o); !errors.Is(err, link.ErrBusy) || !strings.Contains(err.Error(), "port=") {
			t.Errorf("a port that was asked for: %v, %v", l, err)
		}
	})
}
