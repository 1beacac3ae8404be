package udplink

import (
	"fmt"
	"math/bits"
	"net/netip"

	"golang.org/x/sys/unix"
)

func openSocket(l *Link, o Options) (socket, error) {
	if o.portable {
		return openPortable(l, o)
	}
	return openBatch(l, o)
}

// bindSocket opens a non-blocking socket that is bound to an address and, if device is not empty, to an interface.
//
// System calls: socket, setsockopt, bind.
func bindSocket(local netip.AddrPort, device string, buffer int) (int, error) {
	fd, err := unix.Socket(family(local.Addr()), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	if err := prepare(fd, local, device, buffer); err != nil {
		_ = unix.Close(fd) // report the first error
		return -1, err
	}
	return fd, nil
}

// boundTo returns local with the port that the socket is bound to.
//
// System calls: getsockname.
func boundTo(fd int, local netip.AddrPort) (netip.AddrPort, error) {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return local, fmt.Errorf("getsockname: %w", err)
	}
	switch at := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(local.Addr(), uint16(at.Port)), nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(local.Addr(), uint16(at.Port)), nil
	}
	return local, fmt.Errorf("getsockname: %T", name)
}

// prepare configures and binds a new socket.
func prepare(fd int, local netip.AddrPort, device string, buffer int) error {
	if err := bindDevice(fd, device); err != nil {
		return err
	}
	if err := setOptions(fd, local.Addr()); err != nil {
		return err
	}
	setBuffers(fd, buffer)
	if err := unix.Bind(fd, unixAddr(local, scope(fd, local.Addr().Zone()))); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

// bindDevice binds a socket to an interface; device is empty for none.
func bindDevice(fd int, device string) error {
	if device == "" {
		return nil
	}
	if err := unix.BindToDevice(fd, device); err != nil {
		return fmt.Errorf("bind to interface %s: %w", device, err)
	}
	return nil
}

func family(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// ect0 is the ECN codepoint ECT(0): the sender understands congestion marks (RFC 3168).
const ect0 = 2

// option is one integer socket option.
type option struct {
	name               string
	level, code, value int
}

// setOptions sets the don't-fragment bit and ECT(0) on sent packets. It requests the ECN bits and the drop count of
// received packets. IP_PMTUDISC_PROBE makes the kernel ignore a path MTU that ICMP reports when it sends packets of this
// socket, because any host can forge the report; the protocol probes the path itself (RFC 8899). With
// IP_PMTUDISC_INTERFACE the kernel would not even store the report, but it would not set the don't-fragment bit either.
func setOptions(fd int, addr netip.Addr) error {
	options := []option{
		{"IP_MTU_DISCOVER", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE},
		{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS, ect0},
		{"IP_RECVTOS", unix.IPPROTO_IP, unix.IP_RECVTOS, 1},
	}
	if addr.Is6() {
		options = []option{
			{"IPV6_V6ONLY", unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1},
			{"IPV6_MTU_DISCOVER", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE},
			{"IPV6_TCLASS", unix.IPPROTO_IPV6, unix.IPV6_TCLASS, ect0},
			{"IPV6_RECVTCLASS", unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1},
		}
	}
	options = append(options, option{"SO_RXQ_OVFL", unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1})
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.code, o.value); err != nil {
			return fmt.Errorf("set %s: %w", o.name, err)
		}
	}
	return nil
}

// setBuffers requests the buffer sizes, beyond the system limit if the process is allowed to. It ignores errors,
// because a smaller buffer only costs packets.
func setBuffers(fd, size int) {
	for _, b := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, b[0], size) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, b[1], size)
		}
	}
}

// receiveWindow returns the number of packets with a payload of this size that the socket's receive buffer holds. It
// returns 0 if the size of the buffer is unknown.
//
// System calls: getsockopt.
func receiveWindow(fd, payload int) int {
	size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return max(1, size/trueSize(payload))
}

// trueSize returns the memory in bytes that the kernel counts for a packet: the data and struct skb_shared_info in a
// block whose size is a power of two, and struct sk_buff.
func trueSize(payload int) int {
	const headers, sharedInfo, skb = 64, 320, 256
	return 1<<bits.Len(uint(payload+headers+sharedInfo-1)) + skb
}
