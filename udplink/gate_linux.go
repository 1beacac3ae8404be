package udplink

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/route"
)

// gate limits the part of the send buffer that two kinds of packets take. All packets of the link share the buffer, and
// a full buffer would block all of them. Packets of connections to resolved neighbours always pass the gate. The kinds:
//
//   - Packets to an unresolved neighbour. The kernel keeps these packets for up to 3 s.
//   - Packets that belong to no connection. Over a veth, a packet stays in the send buffer until the IP layer of the
//     receiver's network namespace takes it, and an administrator of that namespace can delay this for any time.
//
// Only the owner of the link uses it.
type gate struct {
	reach *route.Reach // if nil, no neighbour counts as unresolved
	fd    int
	limit int        // bytes of the send buffer, as the kernel counts them
	held  int        // upper bound of the bytes that the two kinds take
	fresh int        // part of held that the next flush sends
	asked bool       // held was compared with the send buffer since the last flush
	next  time.Time  // when the next packet of the trickle may pass
	full  congestion // of packets that belong to no connection
}

// open reads the size of the socket's send buffer. Every packet passes the gate on the loopback interface, and if the
// process may not use netlink.
//
// System calls: getsockopt; socket, bind, sendto, recvfrom (netlink).
func (g *gate) open(fd int, local netip.AddrPort) error {
	g.fd = fd
	if !local.Addr().IsLoopback() {
		g.reach, _ = route.OpenReach(local) // nil if there is an error
	}
	return g.empty()
}

// empty prepares for a new socket, whose send buffer is empty.
//
// System calls: getsockopt.
func (g *gate) empty() error {
	size, err := unix.GetsockoptInt(g.fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return fmt.Errorf("read SO_SNDBUF: %w", err)
	}
	g.limit, g.held = size/4, 0
	return nil
}

func (g *gate) close() {
	if g.reach != nil {
		g.reach.Close()
	}
}

// answers reports whether the link may send a stateless reply of size bytes to an address. The address may be forged,
// so replies to unresolved neighbours are limited (Reach.Ask).
func (g *gate) answers(to *sockaddr, size int) bool {
	if g.reach != nil && !g.reach.Known(to.addrPort("")) && !g.reach.Ask(to.addr(), time.Now()) {
		return false
	}
	return g.passesUnconnected(size)
}

// passesUnconnected reports whether a packet that belongs to no connection may be sent.
func (g *gate) passesUnconnected(size int) bool {
	if !g.take(size) {
		g.full.refuse(1)
		return false
	}
	g.full.passed++
	return true
}

// take counts a packet in held, and reports whether held stays below limit. Of the earlier packets in held, most have
// left; they are subtracted only when the limit is reached.
//
// System calls: ioctl, once per flush at most.
func (g *gate) take(size int) bool {
	cost := 2*size + perPacket
	if g.held+cost > g.limit && !g.asked {
		g.asked = true
		if used, err := unix.IoctlGetUint32(g.fd, unix.SIOCOUTQ); err == nil {
			g.held = min(g.held-g.fresh, int(used)) + g.fresh
		}
	}
	if g.held+cost > g.limit {
		return false
	}
	g.held += cost
	g.fresh += cost
	return true
}

// flushed notes that the packets which passed are now in the send buffer.
func (g *gate) flushed() { g.fresh, g.asked = 0, false }

// passes reports whether a packet may be sent along a path. If the neighbour is unresolved, the packet passes in two
// cases:
//
//   - The two kinds of packets take fewer than limit bytes of the send buffer.
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
	if g.reach.Known(way.to) {
		way.reached = version
		return true
	}
	if g.take(size) {
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
	// trickle is the time between two packets to unresolved neighbours while they find no room otherwise.
	trickle = 100 * time.Millisecond
)
