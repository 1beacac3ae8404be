package udplink

import (
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// routeQuery asks the kernel for routes from one address. Its socket is opened together with the link, so every query
// concerns the link's network namespace, on whichever thread it runs. Nothing is sent on the socket.
type routeQuery struct {
	from netip.Addr

	mu sync.Mutex // guards fd, and makes connect and getsockopt one step
	fd int        // -1 when closed
}

// openRouteQuery opens the socket.
//
// System calls: socket, bind.
func openRouteQuery(from netip.Addr) (*routeQuery, error) {
	fd, err := unix.Socket(family(from), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := unix.Bind(fd, unixAddr(netip.AddrPortFrom(from, 0))); err != nil {
		_ = unix.Close(fd) // report the first error
		return nil, fmt.Errorf("bind: %w", err)
	}
	return &routeQuery{from: from, fd: fd}, nil
}

// routeMTU returns the MTU of the route to an address. It fails if there is no route.
//
// System calls: connect, getsockopt.
func (p *routeQuery) routeMTU(to netip.AddrPort) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // a socket that sent nothing
		p.fd = -1
	}
}
