package route

import (
	"fmt"
	"net/netip"
	"syscall"
)

// discard is the UDP port of the discard protocol (RFC 863).
const discard = 9

// solicitor makes the kernel solicit an IPv6 neighbour when NTF_USE cannot. A solicitation with NTF_USE needs a
// link-local source address, which an interface may not have. The solicitor instead sends an empty datagram to the
// discard port; the kernel solicits the neighbour for this packet.
type solicitor struct{ fd int }

// openSolicitor opens a socket that is bound to the interface. It returns nil on a host without IPv6.
//
// System calls: socket, setsockopt(SO_BINDTODEVICE).
func openSolicitor(device string) (*solicitor, error) {
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err == syscall.EAFNOSUPPORT {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("route: open IPv6 socket: %w", err)
	}
	if err := syscall.BindToDevice(fd, device); err != nil {
		_ = syscall.Close(fd) // report the first error
		return nil, fmt.Errorf("route: bind IPv6 socket to %s: %w", device, err)
	}
	return &solicitor{fd: fd}, nil
}

// solicit sends the datagram. It ignores errors: the send may fail while the neighbour is unknown.
//
// System calls: sendto.
func (n *solicitor) solicit(to netip.Addr) {
	if n != nil {
		_ = syscall.Sendto(n.fd, nil, syscall.MSG_DONTWAIT, &syscall.SockaddrInet6{Port: discard, Addr: to.As16()})
	}
}

func (n *solicitor) close() {
	if n != nil {
		_ = syscall.Close(n.fd) // nothing is in flight on it
	}
}

// canSolicit reports whether the kernel can solicit this neighbour without a packet.
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
