package xdp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/exclusive"
)

// guard is a kernel UDP socket at one address and the device's port, while the device is open. No other program can then
// bind the port, and the kernel sends no port unreachable messages for packets that the XDP program passes on.
//
// Packets between programs of one host cross the loopback interface, whatever their addresses, so AF_XDP does not see
// them. The guard exchanges these packets. It receives no others: a filter drops what does not come from the loopback
// interface.
type guard struct {
	addr netip.Addr
	conn *net.UDPConn

	mu     sync.RWMutex // read-locked while fd is used
	fd     int          // of conn
	closed bool
}

// loopbackIndex is the index of the loopback interface in each network namespace (LOOPBACK_IFINDEX of linux/netdevice.h).
const loopbackIndex = 1

// fromLoopback passes packets that come from the loopback interface.
var fromLoopback = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 1<<32 - 0x1000 + 8}, // SKF_AD_OFF + SKF_AD_IFINDEX
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: loopbackIndex, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
}

// openGuard binds a guard to an address of an interface. The zone of a link-local address is the index, because package
// net keeps the indices of names for a minute, in which an interface may be replaced by another with its name.
//
// System calls: socket, setsockopt, bind.
func openGuard(at netip.AddrPort, ifindex int) (*guard, error) {
	g := &guard{addr: at.Addr(), fd: -1}
	if g.addr.IsLinkLocalUnicast() && g.addr.Is6() {
		at = netip.AddrPortFrom(g.addr.WithZone(strconv.Itoa(ifindex)), at.Port())
	}
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		refused := raw.Control(func(fd uintptr) { err = prepareGuard(int(fd), g.addr) })
		return errors.Join(err, refused)
	}}
	conn, err := lc.ListenPacket(context.Background(), "udp", at.String())
	if err != nil {
		return nil, err
	}
	g.conn = conn.(*net.UDPConn)
	raw, err := g.conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { g.fd = int(fd) })
	}
	if err == nil {
		exclusive.Add(g.fd)
	}
	return g, err
}

// prepareGuard sets the options of a guard. The kernel ignores ICMP messages about its path MTU: it sends on the loopback
// interface only, so any such message is forged, and other programs of the host would use a false MTU to the peer for ten
// minutes.
func prepareGuard(fd int, addr netip.Addr) error {
	level, option, value := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_INTERFACE
	if addr.Is6() {
		level, option, value = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_INTERFACE
	}
	program := unix.SockFprog{Len: uint16(len(fromLoopback)), Filter: &fromLoopback[0]}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, guardBuffer) // without privilege the default stays
	return errors.Join(unix.SetsockoptInt(fd, level, option, value),
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program))
}

// send sends a packet to a program of this host. It never blocks. It reports false if the kernel did not take the packet.
//
// System calls: sendto.
func (g *guard) send(data []byte, to unix.Sockaddr) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return !g.closed && unix.Sendto(g.fd, data, unix.MSG_DONTWAIT, to) == nil
}

// read passes packets to a socket until the guard is closed. A packet of more than size bytes is cut; the protocol then
// drops it.
func (g *guard) read(s *Socket, size int) {
	b := make([]byte, size)
	for {
		n, from, err := g.conn.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			s.deliver(b[:n], netip.AddrPortFrom(from.Addr().Unmap().WithZone(""), from.Port()), g.addr)
		}
	}
}

func (g *guard) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	exclusive.Remove(g.fd)
	return g.conn.Close()
}

// sockaddr converts an address for sendto.
func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
