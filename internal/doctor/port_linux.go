package doctor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// checkPort looks for a socket of the kernel on our address and port.
func checkPort(ctx context.Context, x *exam) []Finding {
	local := x.local()
	if !local.IsValid() {
		return nil // another check reports it
	}
	at := netip.AddrPortFrom(local, x.Port)
	sockets := udpSockets(at)
	if len(sockets) == 0 {
		return ok("UDP port %d of %v is free", at.Port(), at.Addr())
	}
	who := socketHolder(ctx, sockets[0])
	if who.self() {
		return nil
	}
	return failure(fmt.Sprintf("UDP port %d of %v is taken by %s", at.Port(), at.Addr(), who),
		"An adapter keeps its port from other programs, and needs it free.",
		fmt.Sprintf("stop that program%s, or choose another port with --port, the same on every host", who.hint()), who.stop())
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
