package udplink

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// sockaddr is a struct sockaddr_in or sockaddr_in6 in the kernel's format: family in host byte order, port in network
// byte order, then the address.
type sockaddr [unix.SizeofSockaddrInet6]byte

const (
	offPort  = 2
	offAddr4 = 4
	offAddr6 = 8
	offScope = 24
)

// makeSockaddr converts an address. zone is the index of the interface of a link-local address, and otherwise 0.
func makeSockaddr(a netip.AddrPort, zone uint32) (s sockaddr) {
	binary.BigEndian.PutUint16(s[offPort:], a.Port())
	if a.Addr().Is4() {
		binary.NativeEndian.PutUint16(s[:], unix.AF_INET)
		ip := a.Addr().As4()
		copy(s[offAddr4:], ip[:])
		return s
	}
	binary.NativeEndian.PutUint16(s[:], unix.AF_INET6)
	ip := a.Addr().As16()
	copy(s[offAddr6:], ip[:])
	binary.NativeEndian.PutUint32(s[offScope:], zone)
	return s
}

func (s *sockaddr) setPort(port uint16) { binary.BigEndian.PutUint16(s[offPort:], port) }

// size returns the length that the kernel expects with the address.
func (s *sockaddr) size() uint32 {
	if binary.NativeEndian.Uint16(s[:]) == unix.AF_INET {
		return unix.SizeofSockaddrInet4
	}
	return unix.SizeofSockaddrInet6
}

// addr converts the IP address, without a zone.
func (s *sockaddr) addr() netip.Addr {
	if binary.NativeEndian.Uint16(s[:]) == unix.AF_INET {
		return netip.AddrFrom4([4]byte(s[offAddr4:]))
	}
	return netip.AddrFrom16([16]byte(s[offAddr6:]))
}

// addrPort converts the address. zone applies to a link-local address.
func (s *sockaddr) addrPort(zone string) netip.AddrPort {
	a := s.addr()
	if a.Is6() && a.IsLinkLocalUnicast() {
		a = a.WithZone(zone)
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(s[offPort:]))
}

// unixAddr converts an address for package unix. zone is the index of the interface of a link-local address, and
// otherwise 0.
func unixAddr(a netip.AddrPort, zone uint32) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: zone}
}

// scope returns the index of the interface that a zone names, in the network namespace of a socket; 0 if there is none.
// Unlike net.InterfaceByName, it does not wait for the kernel's lock of network settings (RTNL).
//
// System calls: ioctl.
func scope(fd int, zone string) uint32 {
	if zone == "" {
		return 0
	}
	if r, err := unix.NewIfreq(zone); err == nil && unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, r) == nil {
		return r.Uint32()
	}
	n, err := strconv.ParseUint(zone, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}
