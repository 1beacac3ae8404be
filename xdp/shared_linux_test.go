package xdp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/bpf"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

// leasePort is the only source port of a lease.
const leasePort = 40007

// sharing is a lab whose side B has an interface that leases share. Side A has a socket on the interface itself.
type sharing struct {
	*pair
	t     testing.TB
	pins  string
	share *bpf.Share
	mtu   int
	v6    bool
}

func newSharing(t testing.TB, mtu int, v6, generic bool) *sharing {
	t.Helper()
	s := &sharing{pair: &pair{lab: newLab(t, mtu, 1)}, t: t, pins: t.TempDir(), mtu: mtu, v6: v6}
	if err := unix.Mount("bpf", s.pins, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(s.pins, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s.ends[lab.A] = s.open(t, lab.A, pairOptions{v6: v6})
	mode := bpf.Native
	if generic {
		mode = bpf.Generic
	}
	s.on(func() error { return s.attach(mode) })
	s.on(func() error { // the socket of side A takes all packets, so the kernel there answers no solicitation
		return errors.Join(labtest.SetNeighbour(lab.Interface, lab.A.Addr4(), lab.A.MAC()),
			labtest.SetNeighbour(lab.Interface, lab.A.Addr6(), lab.A.MAC()))
	})
	t.Cleanup(func() { s.on(s.share.Detach) })
	return s
}

func (s *sharing) on(f func() error) {
	s.t.Helper()
	onSide(s.t, s.lab, lab.B, f)
}

func (s *sharing) attach(mode bpf.Mode) (err error) {
	s.share, err = bpf.OpenShare(filepath.Join(s.pins, "shared"), bpf.Options{
		Interface: lab.Interface, Port: DefaultPort, MAC: [6]byte(lab.B.MAC()), Mode: mode,
		Addresses: []netip.Addr{lab.B.Addr4(), lab.B.Addr6()},
	})
	return err
}

// dir is the directory of the pins of the lease with an engine.
func (s *sharing) dir(engine int) string { return filepath.Join(s.pins, fmt.Sprint("lease", engine)) }

// lease opens the socket of a lease that has one engine.
func (s *sharing) lease(engine int) (socket *Socket) {
	s.t.Helper()
	s.on(func() (err error) {
		socket, err = s.connect(engine)
		return err
	})
	s.t.Cleanup(func() { _ = socket.Close() })
	return socket
}

func (s *sharing) connect(engine int) (*Socket, error) {
	host, client := fmt.Sprint("host", engine), fmt.Sprint("client", engine)
	if err := labtest.AddPair(host, client, s.mtu); err != nil {
		return nil, err
	}
	out, err := net.InterfaceByName(host)
	if err != nil {
		return nil, err
	}
	in, err := net.InterfaceByName(client)
	if err != nil {
		return nil, err
	}
	local := lab.B.Addr4()
	if s.v6 {
		local = lab.B.Addr6()
	}
	o := DefaultOptions()
	socket, err := openSocket(place{ifindex: in.Index, name: client, mode: Copy}, leasedHost(lab.B.MAC(), local, s.mtu), &o)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.dir(engine), 0o700); err != nil {
		return socket, err
	}
	err = s.share.Connect(bpf.End{Dir: s.dir(engine), Host: out.Index, Client: in.Index, First: engine, MTU: s.mtu, Socket: socket.fd})
	if err != nil {
		return socket, err
	}
	return socket, s.share.SetEnd(engine, out.Index, true)
}

// leasedHost is a host whose next hop has no MAC address, because the kernel fills it in.
func leasedHost(mac net.HardwareAddr, local netip.Addr, mtu int) host {
	return host{
		mac: [6]byte(mac), local: netip.AddrPortFrom(local, DefaultPort), sources: []uint16{leasePort}, mtu: mtu, router: fixedRouter{&fixedHop{mtu: mtu}},
		served: serving(netip.PrefixFrom(lab.B.Addr4(), 24).String(), netip.PrefixFrom(lab.B.Addr6(), 64).String()),
	}
}

// transfer sends a packet of package wire to an engine, and checks that it arrives unchanged.
func transfer(t *testing.T, from, to *Socket, path link.Path, size, engine int, n uint32) {
	t.Helper()
	const data = 0x21 // version and type
	bufs := message(t, from, path, size, data<<24|n)
	bufs[0].Data[4] = byte(engine)
	var want []byte
	for _, b := range bufs {
		want = append(want, b.Data...)
	}
	from.Send(bufs)
	if got := collect(t, to, 1)[0]; !bytes.Equal(got, want) {
		t.Fatalf("packet %d of %d bytes differs, or %d bytes arrived", n, size, len(got))
	}
}

// TestSharedPath: two leases of an interface and a direct peer exchange packets, each lease only its own.
func TestSharedPath(t *testing.T) {
	for _, tc := range []struct {
		name        string
		mtu         int
		v6, generic bool
	}{
		{"IPv4", 1500, false, false},
		{"IPv6", 1500, true, false},
		{"IPv4 MTU 9000", 9000, false, false},
		{"IPv6 MTU 9000", 9000, true, false},
		{"generic", 1500, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSharing(t, tc.mtu, tc.v6, tc.generic)
			peer := s.ends[lab.A]
			for _, engine := range []int{3, 200} {
				lease := s.lease(engine)
				s.ends[lab.B] = lease
				if err := s.share.SetPort(leasePort, engine); err != nil {
					t.Fatal(err)
				}
				to, from := s.path(t, lab.A), s.path(t, lab.B)
				for n, size := range []int{64, 1000, lease.PathMTU(from), 64} {
					transfer(t, peer, lease, to, size, engine, uint32(n))
					transfer(t, lease, peer, from, size, engine, uint32(n))
				}
				settled(t, lease)
			}
		})
	}
}

// TestSharedLeaseEnds: the kernel forgets a lease's socket with its last descriptor, and another process that opens the
// pins finds that out. The program, its maps and the other lease work on without the process that made them.
func TestSharedLeaseEnds(t *testing.T) {
	s := newSharing(t, 1500, false, false)
	peer, gone, stays := s.ends[lab.A], s.lease(3), s.lease(200)
	s.ends[lab.B] = stays
	to := s.path(t, lab.A)
	if err := s.share.Close(); err != nil {
		t.Fatal(err)
	}
	transfer(t, peer, gone, to, 64, 3, 1)
	if !s.taken(3) || !s.taken(200) {
		t.Fatal("a living lease looks dead")
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	if s.taken(3) {
		t.Error("a dead lease looks alive")
	}
	s.on(func() error { return s.attach(bpf.Native) })
	transfer(t, peer, stays, to, 64, 200, 2)
	if !s.taken(200) {
		t.Error("taking over has ended a lease")
	}
}

// taken reports whether a process has the socket of a lease open.
func (s *sharing) taken(engine int) (taken bool) {
	s.t.Helper()
	s.on(func() error {
		fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		slots := uint32(minRing)
		if err := setOption(fd, unix.SOL_XDP, unix.XDP_RX_RING, &slots); err != nil {
			return err
		}
		taken, err = bpf.Occupy(s.dir(engine), fd)
		return err
	})
	return taken
}

// TestSharedQualifiers: a Connect reaches the lease that listens on its qualifier, and one for a qualifier without a
// listener the lease of AnyEngine. A Reset for the service port reaches every lease.
func TestSharedQualifiers(t *testing.T) {
	const connect, reset = 0x23, 0x28 // version and type
	s := newSharing(t, 1500, false, false)
	peer, a, b := s.ends[lab.A], s.lease(3), s.lease(200)
	s.ends[lab.B] = a
	to := s.path(t, lab.A)
	if err := s.share.SetQualifier(77, 200); err != nil {
		t.Fatal(err)
	}
	if err := s.share.SetQualifier(77, 3); !errors.Is(err, bpf.ErrTaken) {
		t.Errorf("a taken qualifier: %v", err)
	}
	s.on(func() error {
		ifi, err := net.InterfaceByName("host3")
		if err != nil {
			return err
		}
		return s.share.SetEnd(bpf.AnyEngine, ifi.Index, false)
	})
	for _, tc := range []struct {
		kind      byte
		qualifier uint64
		want      []*Socket
	}{
		{connect, 77, []*Socket{b}},
		{connect, 78, []*Socket{a}},
		{reset, 0, []*Socket{a, b}},
	} {
		bufs := message(t, peer, to, 128, 0)
		bufs[0].Data[0] = tc.kind
		binary.BigEndian.PutUint64(bufs[0].Data[56:], tc.qualifier)
		peer.Send(bufs)
		for _, l := range tc.want {
			if got := collect(t, l, 1)[0]; got[0] != tc.kind {
				t.Errorf("type %#x, want %#x", got[0], tc.kind)
			}
		}
	}
	for _, l := range []*Socket{a, b} {
		if n := l.Stats().RxPackets; n != 2 {
			t.Errorf("%d packets, want 2", n)
		}
	}
}

// BenchmarkSharedRoundTrip compares a round trip of 64 bytes with a lease at one end with one between interfaces.
func BenchmarkSharedRoundTrip(b *testing.B) {
	for _, shared := range []bool{false, true} {
		b.Run(map[bool]string{false: "direct", true: "shared"}[shared], func(b *testing.B) {
			var p *pair
			if shared {
				s := newSharing(b, 1500, false, false)
				s.ends[lab.B] = s.lease(3)
				if err := s.share.SetPort(leasePort, 3); err != nil {
					b.Fatal(err)
				}
				p = s.pair
			} else {
				p = newPair(b, pairOptions{})
			}
			to, from := p.path(b, lab.A), p.path(b, lab.B)
			bufs := make([]link.Buf, 8)
			hop := func(from, to *Socket, path link.Path) {
				out := bufs[:1]
				for from.Alloc(out) == 0 {
				}
				out[0].Data, out[0].Path, out[0].Flags = out[0].Data[:64], path, 0
				copy(out[0].Data, "\x21\x00\x00\x00\x03")
				from.Send(out)
				for {
					if n := to.Recv(bufs); n > 0 {
						to.Free(bufs[:n])
						return
					}
				}
			}
			for b.Loop() {
				hop(p.ends[lab.A], p.ends[lab.B], to)
				hop(p.ends[lab.B], p.ends[lab.A], from)
			}
		})
	}
}
