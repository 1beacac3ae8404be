package udplink

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/route"
)

// gate bounds the packets that wait in the kernel for a neighbour to be resolved. The kernel holds them for up to 3 s and
// charges them to the send buffer, which all packets of the link share: when it is full, none leaves. Packets to
// neighbours that are resolved, and where none is needed, always pass. It belongs to the owner of the link.
type gate struct {
	reach   *route.Reach // nil: every packet passes
	fd      int
	limit   int       // bytes of the send buffer, as the kernel counts them
	waiting int       // bytes, about, of packets that passed and are not yet sent
	next    time.Time // of the trickle
}

// open reads the size of the send buffer of a socket. On the loopback interface, and where the process may not use
// netlink, every packet passes.
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

// answers reports whether an answer without a connection may go to an address. Anybody can forge the source that it goes
// to, so that to neighbours that are not resolved there are few: Reach.Ask.
func (g *gate) answers(to *sockaddr) bool {
	return g.reach == nil || g.reach.Known(to.addr()) || g.reach.Ask(time.Now())
}

// passes reports whether a packet may go along a path. To a neighbour that is not resolved it may while less than limit of
// the send buffer is in use, and then one in each trickle: what is in use may belong to others, and without a packet the
// kernel resolves nobody.
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
	// perPacket is what the kernel counts for a packet besides up to twice its size, in bytes: struct sk_buff, headers and
	// rounding.
	perPacket = 1024
	// trickle is the time between two packets to neighbours that are not resolved, once they have had their part of the
	// send buffer.
	trickle = 100 * time.Millisecond
)
