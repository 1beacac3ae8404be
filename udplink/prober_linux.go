package udplink

import (
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// prober asks the kernel for routes from one address. Its socket is opened with the link and so
// stays in the link's network namespace whatever thread asks; nothing is ever sent on it.
type prober struct {
	from netip.Addr

	mu sync.Mutex // guards fd, and makes a query one step
	fd int        // -1 when closed
}

// openProber makes the socket.
//
// System calls: socket, bind.
func openProber(from netip.Addr) (*prober, error) {
	fd, err := unix.Socket(family(from), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := unix.Bind(fd, unixAddr(netip.AddrPortFrom(from, 0))); err != nil {
		_ = unix.Close(fd) // the first error is the one to tell
		return nil, fmt.Errorf("bind: %w", err)
	}
	return &prober{from: from, fd: fd}, nil
}

// routeMTU is the MTU of the route to an address. It fails when there is no route.
//
// System calls: connect, getsockopt.
func (p *prober) routeMTU(to netip.AddrPort) (int, error) {
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

func (p *prober) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // nothing was written
		p.fd = -1
	}
}
