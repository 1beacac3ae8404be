package route

import (
	"fmt"
	"net/netip"
	"syscall"
)

// discard is the port of RFC 863.
const discard = 9

// nudger makes the kernel solicit an IPv6 neighbour where NTF_USE cannot: a solicitation that no
// packet caused goes out from a link-local address, and an interface need not have one. An empty
// datagram to the discard port then is the packet that causes it.
type nudger struct{ fd int }

// openNudger binds a socket to the interface. A host without IPv6 needs none.
//
// System calls: socket, setsockopt(SO_BINDTODEVICE).
func openNudger(device string) (*nudger, error) {
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err == syscall.EAFNOSUPPORT {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("route: open IPv6 socket: %w", err)
	}
	if err := syscall.BindToDevice(fd, device); err != nil {
		_ = syscall.Close(fd) // the first error is the one to tell
		return nil, fmt.Errorf("route: bind IPv6 socket to %s: %w", device, err)
	}
	return &nudger{fd: fd}, nil
}

// nudge sends the datagram. It may fail for as long as the neighbour is unknown.
//
// System calls: sendto.
func (n *nudger) nudge(to netip.Addr) {
	if n != nil {
		_ = syscall.Sendto(n.fd, nil, syscall.MSG_DONTWAIT, &syscall.SockaddrInet6{Port: discard, Addr: to.As16()})
	}
}

func (n *nudger) close() {
	if n != nil {
		_ = syscall.Close(n.fd) // nothing is in flight on it
	}
}

// canSolicit says whether the kernel solicits this neighbour by itself.
func (i *Interface) canSolicit(to netip.Addr) bool {
	if to.Is4() || to.IsLinkLocalUnicast() {
		return true
	}
	for _, p := range i.Addrs {
		if p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() {
			return true
		}
	}
	return false
}
