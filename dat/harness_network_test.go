package dat

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
)

// A transport opens adapters on the two sides of some network.
type transport struct {
	name string
	make func(testing.TB) network
}

type network interface {
	open(side int, o Options) (*IA, error)
	addr(side int) netip.Addr
	absent() netip.Addr // an address that has a route, but no host
}

// eachLink runs a test over every link that this host has.
func eachLink(t *testing.T, f func(t *testing.T, n network)) {
	for _, tr := range transports {
		if tr.name != plainUDP {
			t.Run(tr.name, func(t *testing.T) { f(t, tr.make(t)) })
		}
	}
}

var transports = append([]transport{{"sim", newSim}, {"udp", newUDP}, {plainUDP, newPlainUDP}}, systemTransports...)

const plainUDP = "udp without offload" // the conformance test skips it with -short, other tests always

// sim is a simulated network.
type sim struct {
	t     testing.TB
	net   *simlink.Net
	links []*simlink.Link
}

func newSim(t testing.TB) network { return newSimWith(t, simlink.Config{}) }

func newSimWith(t testing.TB, cfg simlink.Config) *sim {
	cfg.Immediate = true
	s := &sim{t: t, net: simlink.New(cfg)}
	t.Cleanup(func() {
		for _, l := range s.links {
			if n := l.Outstanding(); n != 0 {
				t.Errorf("%v: %d frames were not given back", l.Local(), n)
			}
			if n := l.Paths(); n != 0 {
				t.Errorf("%v: %d paths were not given back", l.Local(), n)
			}
		}
	})
	return s
}

func (s *sim) open(side int, o Options) (*IA, error) {
	l := s.net.Link(netip.AddrPortFrom(s.addr(side), DefaultPort))
	s.links = append(s.links, l)
	return OpenLink(sharedKeys.complete(o), l)
}

func (s *sim) addr(side int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(side + 1)}) }
func (s *sim) absent() netip.Addr       { return s.addr(7) }

// udp is a network of kernel UDP sockets on the loopback interface, where every address is that of a host. A socket that
// nobody reads has the port at the absent address. Without it the kernel would answer with ICMP port unreachable.
type udp struct {
	port      uint16
	noOffload bool
}

// newPlainUDP makes a udp without segmentation offload.
func newPlainUDP(t testing.TB) network {
	u := newUDP(t).(udp)
	u.noOffload = true
	return u
}

var nextPort atomic.Uint32

func newUDP(t testing.TB) network {
	if warmDevices.port != 0 {
		u := udp{port: warmDevices.port}
		u.silence(t) // fails if the test has called newUDP before
		return u
	}
	for range 1000 {
		u := udp{port: uint16(20000 + nextPort.Add(1)%10000)}
		if u.free() && u.silence(t) {
			if warmDevices.on {
				warmDevices.port = u.port
			}
			return u
		}
	}
	t.Fatal("no UDP port is free at 127.0.0.1, 127.0.0.2 and 127.0.0.8")
	return nil
}

// silence opens a socket at the absent address until the end of the test. It reports whether the port was free.
func (u udp) silence(t testing.TB) bool {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(u.absent(), u.port)))
	if err != nil {
		return false
	}
	t.Cleanup(func() { c.Close() })
	return true
}

func (u udp) free() bool {
	for side := range 2 {
		ia, err := u.open(side, Options{})
		if errors.Is(err, link.ErrBusy) {
			return false
		}
		if err == nil {
			ia.Close()
		}
	}
	return true
}

func (u udp) open(side int, o Options) (*IA, error) {
	warmDevices.ready(side, o, func() (*IA, error) { return u.openAs(side, u.device(side), Options{}) })
	return u.openAs(side, u.device(side), o)
}

func (u udp) addr(side int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, byte(side + 1)}) }
func (u udp) absent() netip.Addr       { return u.addr(7) }
