package bpf

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// testPort is the service port, testSource a source port.
const testPort, testSource = 17473, 40001

var (
	local4  = netip.MustParseAddr("10.73.0.1")
	local6  = netip.MustParseAddr("fd73::1")
	remote4 = netip.MustParseAddr("10.73.0.2")
	remote6 = netip.MustParseAddr("fd73::2")

	localMAC = [6]byte{2, 0x73, 0, 0, 0, 1}
)

// Offsets in an untagged frame.
const (
	offEtherType = 12
	offIP        = 14
	offUDP4      = offIP + 20
	offUDP6      = offIP + 40

	offIP4Length   = offIP + 2
	offIP4Fragment = offIP + 6
	offIP4Proto    = offIP + 9
	offIP4Dst      = offIP + 16
	offIP6Length   = offIP + 4
	offIP6Next     = offIP + 6
	offIP6Dst      = offIP + 24
	offUDPDst      = 2
	offUDPLength   = 4
)

// frame4 returns a valid frame for local4 and testPort.
func frame4(payload int) []byte {
	ip := make([]byte, 20, 20+8+payload)
	ip[0] = 0x45
	binary.BigEndian.PutUint16(ip[2:], uint16(20+8+payload))
	ip[6] = 0x40 // don't fragment
	ip[8], ip[9] = 64, 17
	copy(ip[12:], remote4.AsSlice())
	copy(ip[16:], local4.AsSlice())
	return ethernet(0x0800, append(ip, udp(payload)...))
}

// frame6 returns a valid frame for local6 and testPort.
func frame6(payload int) []byte {
	ip := make([]byte, 40, 40+8+payload)
	ip[0] = 0x60
	binary.BigEndian.PutUint16(ip[4:], uint16(8+payload))
	ip[6], ip[7] = 17, 64
	copy(ip[8:], remote6.AsSlice())
	copy(ip[24:], local6.AsSlice())
	return ethernet(0x86dd, append(ip, udp(payload)...))
}

func ethernet(etherType uint16, payload []byte) []byte {
	b := append(localMAC[:], 2, 0x73, 0, 0, 0, 2)
	return append(binary.BigEndian.AppendUint16(b, etherType), payload...)
}

func udp(payload int) []byte {
	b := make([]byte, 8+payload)
	binary.BigEndian.PutUint16(b, 40000)
	binary.BigEndian.PutUint16(b[offUDPDst:], testPort)
	binary.BigEndian.PutUint16(b[offUDPLength:], uint16(8+payload))
	for i := range payload {
		b[8+i] = byte(i)
	}
	return b
}

// The functions below change a frame and return it.

func put8(b []byte, offset int, v uint8) []byte {
	b[offset] = v
	return b
}

func put16(b []byte, offset int, v uint16) []byte {
	binary.BigEndian.PutUint16(b[offset:], v)
	return b
}

func insert(b []byte, offset int, v ...byte) []byte { return slices.Insert(b, offset, v...) }

// tag inserts a VLAN tag with ID 0, which carries only a priority. tagVLAN inserts one with a VLAN ID.
func tag(b []byte, etherType uint16) []byte {
	return insert(b, offEtherType, byte(etherType>>8), byte(etherType), 0x20, 0)
}

func tagVLAN(b []byte, etherType, id uint16) []byte {
	return insert(b, offEtherType, byte(etherType>>8), byte(etherType), byte(0x20|id>>8), byte(id))
}

// options4 inserts four bytes of IPv4 options into the header.
func options4(b []byte) []byte {
	put8(b, offIP, 0x46)
	put16(b, offIP4Length, binary.BigEndian.Uint16(b[offIP4Length:])+4)
	return insert(b, offUDP4, 1, 1, 1, 0)
}

// extension6 inserts an extension header of 8 bytes between IPv6 and UDP.
func extension6(b []byte, kind uint8) []byte {
	put8(b, offIP6Next, kind)
	put16(b, offIP6Length, binary.BigEndian.Uint16(b[offIP6Length:])+8)
	return insert(b, offUDP6, 17, 0, 0, 0, 0, 0, 0, 0)
}
