package udplink

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Offsets in a classic BPF program of a UDP socket: the packet begins with the UDP header, and negative offsets from
// SKF_NET_OFF address the IP header.
const (
	netOffset = 1<<32 - 1<<20 // SKF_NET_OFF of linux/filter.h
	source4   = netOffset + 12
	source6   = netOffset + 8
	udpHeader = 8
)

// shed implements link.Shedder with a socket filter, which needs no privilege. A group of packets is dropped or kept as a
// whole.
//
// System calls: setsockopt.
func (s *batch) shed(from netip.Addr, value, mask byte) {
	if !from.IsValid() {
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) // fails if there is no filter
		return
	}
	filter := shedFilter(from.Unmap(), value, mask)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_ = unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program) // without it, the engine drops the packets
}

// shedFilter returns a program that drops packets from an address whose payload begins with value.
func shedFilter(from netip.Addr, value, mask byte) []unix.SockFilter {
	words, offset := from.AsSlice(), uint32(source4)
	if from.Is6() {
		offset = source6
	}
	f := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: udpHeader},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: uint32(mask)},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(value & mask), Jf: uint8(len(words)/2 + 1)},
	}
	for i := 0; i < len(words); i += 4 {
		f = append(f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset + uint32(i)},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: binary.BigEndian.Uint32(words[i:]), Jf: uint8((len(words)-i-4)/2 + 1)})
	}
	return append(f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1})
}
