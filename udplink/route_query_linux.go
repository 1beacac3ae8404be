package udplink

import (
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/route"
)

// routeQuery asks the kernel for routes from one address. Its sockets are opened together with the link, so every query
// concerns the link's network namespace, on whichever thread it runs. Nothing is sent on the UDP socket.
type routeQuery struct {
	from   netip.Addr
	enough int        // no packet of the link is larger, in bytes of IP packet
	fib    *route.FIB // nil if the process may not use netlink

	mu sync.Mutex // guards fd, and makes connect and getsockopt one step
	fd int        // -1 when closed
}

// openRouteQuery opens the sockets. enough is the size of the link's largest IP packet.
//
// System calls: socket, bind; socket, bind (netlink).
func openRouteQuery(from netip.Addr, enough int) (*routeQuery, error) {
	fd, err := unix.Socket(family(from), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := unix.Bind(fd, unixAddr(netip.AddrPortFrom(from, 0))); err != nil {
		_ = unix.Close(fd) // report the first error
		return nil, fmt.Errorf("bind: %w", err)
	}
	p := &routeQuery{from: from, enough: enough, fd: fd}
	p.fib, _ = route.OpenFIB() // nil if there is an error
	return p, nil
}

// routeMTU returns the MTU of the route to an address; 0 means that it is unknown. It fails if there is no route.
//
// The kernel's path MTU may be too small, because any host can forge the ICMP message that lowers it. If it is smaller
// than the link's packets, the routing table decides instead.
//
// System calls: connect, getsockopt; sendto, recvfrom (netlink).
func (p *routeQuery) routeMTU(to netip.AddrPort) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mtu, err := p.pathMTU(to)
	if err != nil || mtu >= p.enough {
		return mtu, err
	}
	if p.fib == nil {
		return 0, nil
	}
	mtu, err = p.fib.MTU(p.from, to.Addr(), int(scope(to.Addr().Zone())))
	if err != nil {
		return 0, nil // the protocol probes what the link does not know
	}
	return mtu, nil
}

// pathMTU returns the kernel's path MTU to an address. It fails if there is no route. The caller holds mu.
//
// System calls: connect, getsockopt.
func (p *routeQuery) pathMTU(to netip.AddrPort) (int, error) {
	if err := unix.Connect(p.fd, unixAddr(to)); err != nil {
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

func (p *routeQuery) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 {
		return
	}
	_ = unix.Close(p.fd) // a socket that sent nothing
	p.fd = -1
	if p.fib != nil {
		p.fib.Close()
	}
}
