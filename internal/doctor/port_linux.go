package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/xdp"
)

// checkPort binds a socket to our address and port for a moment, as opening the adapter does.
func checkPort(ctx context.Context, x *exam) []Finding {
	if !x.address.IsValid() {
		return nil // another check reports it
	}
	at := netip.AddrPortFrom(x.address, x.Port)
	switch err := bindUDP(at); {
	case err == nil:
		return append(ok("UDP port %d of %v is free", at.Port(), at.Addr()), x.unserved()...)
	case errors.Is(err, unix.EADDRINUSE):
		return x.portTaken(ctx, at)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return nil // the check of the address reports it
	default:
		return portRefused(at, err)
	}
}

// unserved names the other addresses of the interface that an adapter over AF_XDP would not serve. It serves those whose
// port is free, up to a limit.
func (x *exam) unserved() []Finding {
	if x.kind == ianame.UDP {
		return nil
	}
	var taken []string
	for _, a := range x.addrs {
		if a.IsLinkLocalUnicast() && a.Is6() {
			a = a.WithZone(x.name())
		}
		if errors.Is(bindUDP(netip.AddrPortFrom(a, x.Port)), unix.EADDRINUSE) {
			taken = append(taken, a.String())
		}
	}
	var found []Finding
	if len(taken) > 0 {
		found = warning(fmt.Sprintf("%s is not served: another program has its UDP port %d", strings.Join(taken, ", "), x.Port),
			"A peer that connects to such an address does not reach the adapter.", "stop that program, or choose another port with --port, the same on every host",
			as(fmt.Sprintf("ss -lunp sport = :%d", x.Port)))
	}
	if more := len(x.addrs) - xdp.MaxAddresses; more > 0 {
		found = append(found, warning(fmt.Sprintf("%s has %d addresses, and an adapter serves %d", x.name(), len(x.addrs), xdp.MaxAddresses),
			"A peer that connects to one of the others does not reach the adapter.", "use fewer addresses", "")...)
	}
	return found
}

// bindUDP binds a UDP socket and closes it. System calls: socket, bind, close.
func bindUDP(at netip.AddrPort) error {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	return c.Close()
}

// portTaken names the program that has the port.
func (x *exam) portTaken(ctx context.Context, at netip.AddrPort) []Finding {
	var who holder
	if sockets := udpSockets(at); len(sockets) > 0 {
		who = socketHolder(ctx, sockets[0])
	}
	if who.self() {
		return nil
	}
	means := "An adapter keeps its port from other programs, and needs it free."
	if x.kind == ianame.UDP {
		means += " A program that opens the adapter without port= gets another port, which is enough for a client."
	}
	return failure(fmt.Sprintf("UDP port %d of %v is taken by %s", at.Port(), at.Addr(), who), means,
		fmt.Sprintf("stop that program%s, or choose another port with --port, the same on every host", who.hint()), who.stop())
}

// portRefused says why this process may not have the port.
func portRefused(at netip.AddrPort, err error) []Finding {
	found := fmt.Sprintf("UDP port %d of %v cannot be opened: %v", at.Port(), at.Addr(), err)
	switch {
	case errors.Is(err, unix.EACCES):
		return failure(found, "Ports below net.ipv4.ip_unprivileged_port_start take CAP_NET_BIND_SERVICE.", "choose a higher port with --port, the same on every host, or run as root", "")
	case errors.Is(err, unix.EMFILE):
		return failure(found, "The process may open too few files.", "raise the limit: ulimit -n, or LimitNOFILE= of a service", "")
	}
	return failure(found, "A container, its seccomp profile or another security module forbids it.", "allow sockets of IPv4 and IPv6", "")
}

// udpSockets returns the inodes of the kernel's UDP sockets that prevent a bind to an address.
func udpSockets(at netip.AddrPort) (inodes []uint64) {
	for _, line := range udpTable() {
		a, valid := netip.AddrFromSlice(line.addr)
		if valid && line.port == uint64(at.Port()) && excludes(a.Unmap(), at.Addr()) {
			inodes = append(inodes, line.inode)
		}
	}
	return inodes
}

// excludes reports whether a socket that is bound to an address prevents a bind to another one. It does if the
// addresses are equal or the bound address is a wildcard. An IPv6 wildcard usually includes IPv4.
func excludes(bound, other netip.Addr) bool {
	if bound.IsUnspecified() {
		return bound.Is6() || other.Is4()
	}
	return bound == other.WithZone("")
}

// udpLine is a line of /proc/net/udp.
type udpLine struct {
	addr  net.IP
	port  uint64
	inode uint64
}
