package udplink

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/route"
)

// gate limits the packets that wait in the kernel for a neighbour to be resolved. The kernel keeps these packets for up
// to 3 s and counts them in the send buffer, which all packets of the link share. A full buffer would block all
// packets. Packets that need no neighbour, or a resolved one, always pass the gate. Only the owner of the link uses it.
type gate struct {
	reach   *route.Reach // if nil, every packet passes
	fd      int
	limit   int       // bytes of the send buffer, as the kernel counts them
	waiting int       // approximate bytes of packets that passed and are not yet sent
	next    time.Time // when the next packet of the trickle may pass
}

// open reads the size of the socket's send buffer. Every packet passes the gate on the loopback interface, and if the
// process may not use netlink.
//
// System calls: getsockopt; socket, bind, sendto, recvfrom (netlink).
func (g *gate) open(fd int, local netip.Addr) error {
	size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return fmt.Errorf("read SO_SNDBUF: %w", err)
	}
	g.fd, g.limit = fd, size/4
	if !local.IsLoopback() {
		g.reach, _ = route.OpenReach() // nil if there is an error
	}
	return nil
}

func (g *gate) close() {
	if g.reach != nil {
		g.reach.Close()
	}
}

// answers reports whether the link may send a stateless reply to an address. The address may be forged, so replies to
// unresolved neighbours are limited (Reach.Ask).
func (g *gate) answers(to *sockaddr) bool {
	return g.reach == nil || g.reach.Known(to.addr()) || g.reach.Ask(to.addr(), time.Now())
}

// passes reports whether a packet may be sent along a path. If the neighbour is unresolved, the packet passes in two
// cases:
//
//   - Fewer than limit bytes of the send buffer are in use.
//   - For at least the time trickle, no packet has passed in this second case. The case is needed because packets to
//     other neighbours may have filled the buffer, and the kernel resolves a neighbour only when a packet is sent to
//     it.
//
// System calls: ioctl, if the neighbour is not resolved.
func (g *gate) passes(way *path, size int) bool {
	if g.reach == nil {
		return true
	}
	version := g.reach.Version()
	if way.reached == version {
		return true
	}
	if g.reach.Known(way.to.Addr()) {
		way.reached = version
		return true
	}
	used, err := unix.IoctlGetUint32(g.fd, unix.SIOCOUTQ)
	if err == nil && int(used)+g.waiting < g.limit {
		g.waiting += 2*size + perPacket
		return true
	}
	now := time.Now()
	if now.Before(g.next) {
		return false
	}
	g.next = now.Add(trickle)
	return true
}

const (
	// perPacket is the kernel's overhead per packet in bytes: struct sk_buff, headers and rounding. The kernel counts
	// it in addition to up to twice the size of the packet.
	perPacket = 1024
	// trickle is the time between two packets to unresolved neighbours while limit bytes of the send buffer are in use.
	trickle = 100 * time.Millisecond
)
