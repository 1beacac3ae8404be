package udplink

import (
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/route"
)

// routeQuery asks the kernel for routes from one address. Its socket is opened together with the link, so every query
// concerns the link's network namespace, on whichever thread it runs. Nothing is sent on the socket.
//
// It makes no netlink request, because such a request waits for the kernel's lock of network settings (RTNL). Any user
// may be able to hold this lock for many seconds, and an attacker can cause queries by connecting.
type routeQuery struct {
	from   netip.Addr
	zone   uint32       // index of the interface of from, if from is a link-local address
	enough int          // no packet of the link is larger, in bytes of IP packet
	reach  *route.Reach // nil if routing tables are unknown
	bound  bool         // packets leave through one interface, which reach does not consider

	mu sync.Mutex // guards fd, and makes connect and getsockopt one step
	fd int        // -1 when closed
}

// openRouteQuery opens the socket. device is the interface of Options. enough is the size of the link's largest IP packet.
//
// System calls: socket, setsockopt, ioctl, bind.
func openRouteQuery(from netip.Addr, device string, enough int) (*routeQuery, error) {
	fd, err := unix.Socket(family(from), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := bindDevice(fd, device); err != nil {
		_ = unix.Close(fd) // report the first error
		return nil, err
	}
	zone := scope(fd, from.Zone())
	if err := unix.Bind(fd, unixAddr(netip.AddrPortFrom(from, 0), zone)); err != nil {
		_ = unix.Close(fd) // report the first error
		return nil, fmt.Errorf("bind: %w", err)
	}
	return &routeQuery{from: from, zone: zone, enough: enough, bound: device != "", fd: fd}, nil
}

// query returns the MTU of the route to an address, and the index of the interface that its zone names. MTU 0 means
// that it is unknown. query fails if there is no route.
//
// The kernel's path MTU may be too small, because any host can forge the ICMP message that lowers it. If it is smaller
// than the link's packets, the routing table decides instead. The routing table also decides if the route depends on the
// source port, because the socket has another port than the link.
//
// System calls: connect, getsockopt; ioctl, if to has another zone than the link's address.
func (p *routeQuery) query(to netip.AddrPort) (mtu int, zone uint32, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if zone, err = p.zoneOf(to.Addr()); err != nil {
		return 0, 0, err
	}
	tables := p.reach != nil && !p.bound
	if tables && p.reach.ByPort(to) {
		if mtu = p.reach.MTU(to); mtu > 0 {
			return mtu, zone, nil
		}
	}
	mtu, err = p.pathMTU(to, zone)
	if err != nil || mtu >= p.enough {
		return mtu, zone, err
	}
	if !tables {
		return 0, zone, nil // the protocol probes what the link does not know
	}
	if known := p.reach.MTU(to); known == 0 || known > mtu {
		mtu = known
	}
	return mtu, zone, nil
}

// zoneOf returns the index of the interface that the zone of an address names. A link at a link-local address reaches only
// those of its own interface. The caller holds mu.
//
// System calls: ioctl, if the address has another zone than the link's address.
func (p *routeQuery) zoneOf(to netip.Addr) (uint32, error) {
	if to.Zone() == p.from.Zone() {
		return p.zone, nil
	}
	zone := scope(p.fd, to.Zone())
	switch {
	case !to.IsLinkLocalUnicast():
	case zone == 0:
		return 0, fmt.Errorf("the zone %q is no interface: %w", to.Zone(), unix.EINVAL)
	case p.zone != 0 && zone != p.zone:
		return 0, fmt.Errorf("the zone %q is another interface than %s: %w", to.Zone(), p.from.Zone(), unix.EINVAL)
	}
	return zone, nil
}

// pathMTU returns the kernel's path MTU to an address. It fails if there is no route. The caller holds mu.
//
// System calls: connect, getsockopt.
func (p *routeQuery) pathMTU(to netip.AddrPort, zone uint32) (int, error) {
	if err := unix.Connect(p.fd, unixAddr(to, zone)); err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	level, code := unix.IPPROTO_IP, unix.IP_MTU
	if p.from.Is6() {
		level, code = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	mtu, err := unix.GetsockoptInt(p.fd, level, code)
	if err != nil {
		return 0, fmt.Errorf("read path MTU: %w", err)
	}
	return mtu, nil
}

// presence returns what tells whether the host has the address, or nil.
func (l *Link) presence() presence {
	if l.routes.reach == nil {
		return nil
	}
	return l.routes.reach
}

func (p *routeQuery) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 {
		return
	}
	_ = unix.Close(p.fd) // a socket that sent nothing
	p.fd = -1
}
