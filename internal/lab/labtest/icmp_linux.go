package labtest

import (
	"encoding/binary"
	"net/netip"
	"syscall"
)

// ForgeTooBig sends a forged ICMP message from the namespace of the calling thread. The message claims that a UDP
// packet from one address to the other is too big for a path with this MTU (RFC 792, fragmentation needed; RFC 4443,
// packet too big). No such packet was sent.
//
// System calls: socket, sendto, close.
func ForgeTooBig(from, to netip.AddrPort, mtu int) error {
	if from.Addr().Is4() {
		return sendICMP(syscall.AF_INET, syscall.IPPROTO_ICMP, &syscall.SockaddrInet4{Addr: from.Addr().As4()}, tooBig4(from, to, mtu))
	}
	return sendICMP(syscall.AF_INET6, syscall.IPPROTO_ICMPV6, &syscall.SockaddrInet6{Addr: from.Addr().As16()}, tooBig6(from, to, mtu))
}

func sendICMP(family, protocol int, to syscall.Sockaddr, message []byte) error {
	fd, err := syscall.Socket(family, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	return syscall.Sendto(fd, message, 0, to)
}

func tooBig4(from, to netip.AddrPort, mtu int) []byte {
	b := []byte{3, 4, 0, 0, 0, 0, byte(mtu >> 8), byte(mtu), 0x45, 0, 5, 0xdc, 0, 0, 0x40, 0, 64, 17, 0, 0}
	b = append(append(b, from.Addr().AsSlice()...), to.Addr().AsSlice()...)
	b = appendUDP(b, from, to)
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
	return b
}

// tooBig6 encodes the message for IPv6. The kernel fills in the checksum.
func tooBig6(from, to netip.AddrPort, mtu int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{2, 0, 0, 0}, uint32(mtu))
	b = append(b, 0x60, 0, 0, 0, 5, 0xb4, 17, 64)
	b = append(append(b, from.Addr().AsSlice()...), to.Addr().AsSlice()...)
	return appendUDP(b, from, to)
}

func appendUDP(b []byte, from, to netip.AddrPort) []byte {
	b = binary.BigEndian.AppendUint16(b, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	return append(b, 5, 0xb4, 0, 0)
}
