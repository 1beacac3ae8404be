package route

import (
	"net/netip"
	"syscall"
)

// Offsets and values of Ethernet, ARP (RFC 826), IPv6 and neighbour discovery (RFC 4861).
const (
	ethSize = 14
	arpSize = 28
	ip6Size = 40
	// nsSize is the size of a solicitation or an advertisement without its link-layer address option.
	nsSize     = 24
	nsOption   = 8
	maxProbe   = ethSize + ip6Size + nsSize + nsOption
	etherIPv4  = 0x0800
	etherARP   = 0x0806
	etherIPv6  = 0x86dd
	arpRequest = 1
	arpReply   = 2
	icmp6      = 58
	icmp6NS    = 135
	icmp6NA    = 136
)

// advertisements is a filter that passes neighbour advertisements.
var advertisements = []syscall.SockFilter{
	{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: ethSize + 6},
	{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: icmp6, Jf: 3},
	{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: ethSize + ip6Size},
	{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: icmp6NA, Jf: 1},
	{Code: syscall.BPF_RET | syscall.BPF_K, K: 1 << 16},
	{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
}

func putEthernet(b []byte, from, to [6]byte, protocol uint16) {
	copy(b, to[:])
	copy(b[6:], from[:])
	be.PutUint16(b[12:], protocol)
}

// putARP encodes an ARP request to one Ethernet address into b and returns the frame.
func putARP(b []byte, ourMAC [6]byte, our netip.Addr, mac [6]byte, addr netip.Addr) []byte {
	putEthernet(b, ourMAC, mac, etherARP)
	p := b[ethSize : ethSize+arpSize]
	be.PutUint16(p, 1) // Ethernet
	be.PutUint16(p[2:], etherIPv4)
	p[4], p[5] = 6, 4
	be.PutUint16(p[6:], arpRequest)
	copy(p[8:], ourMAC[:])
	copy(p[14:], our.AsSlice())
	copy(p[18:], mac[:])
	copy(p[24:], addr.AsSlice())
	return b[:ethSize+arpSize]
}

// parseARP returns the address that an ARP reply is for.
func parseARP(b []byte) (addr netip.Addr, ok bool) {
	if len(b) < ethSize+arpSize {
		return addr, false
	}
	p := b[ethSize:]
	return netip.AddrFrom4([4]byte(p[14:])), be.Uint16(p[2:]) == etherIPv4 && be.Uint16(p[6:]) == arpReply
}

// putSolicitation encodes a neighbour solicitation to one Ethernet address into b and returns the frame.
func putSolicitation(b []byte, ourMAC [6]byte, our netip.Addr, mac [6]byte, addr netip.Addr) []byte {
	putEthernet(b, ourMAC, mac, etherIPv6)
	ip := b[ethSize:]
	ip[0], ip[6], ip[7] = 6<<4, icmp6, 255
	be.PutUint16(ip[4:], nsSize+nsOption)
	copy(ip[8:], our.AsSlice())
	copy(ip[24:], addr.AsSlice())
	ns := ip[ip6Size : ip6Size+nsSize+nsOption]
	ns[0] = icmp6NS
	copy(ns[8:], addr.AsSlice())
	ns[nsSize], ns[nsSize+1] = 1, 1 // source link-layer address, 8 bytes
	copy(ns[nsSize+2:], ourMAC[:])
	be.PutUint16(ns[2:], checksum6(ip[8:ip6Size], ns))
	return b[:ethSize+ip6Size+len(ns)]
}

// checksum6 returns the checksum of an ICMPv6 message between two addresses. The checksum field must be 0.
func checksum6(addrs, message []byte) uint16 {
	sum := uint32(len(message)) + icmp6
	for _, b := range [...][]byte{addrs, message} {
		for i := 0; i+1 < len(b); i += 2 {
			sum += uint32(be.Uint16(b[i:]))
		}
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// parseAdvertisement returns the target address of a neighbour advertisement. It rejects advertisements that a router
// has forwarded.
func parseAdvertisement(b []byte) (addr netip.Addr, ok bool) {
	if len(b) < ethSize+ip6Size+nsSize {
		return addr, false
	}
	ip := b[ethSize:]
	na := ip[ip6Size:]
	return netip.AddrFrom16([16]byte(na[8:])), ip[6] == icmp6 && ip[7] == 255 && na[0] == icmp6NA
}
