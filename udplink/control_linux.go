package udplink

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// The ECN bits of the IPv4 TOS and the IPv6 traffic class, and "congestion experienced".
const (
	ecnMask = 3
	ecnCE   = 3
)

// control is what the kernel says about a packet beside its payload.
type control struct {
	ecn     byte
	lost    uint32
	counted bool // lost was given
}

// parseControl reads control messages: struct cmsghdr {length, level, type} with the length in one
// machine word, then data, each message aligned to a word. A malformed message ends it.
func parseControl(b []byte) (c control) {
	const word = unix.SizeofCmsghdr - 8
	for len(b) >= unix.SizeofCmsghdr {
		length := machineWord(b[:word])
		if length < unix.SizeofCmsghdr || length > uint64(len(b)) {
			return c
		}
		level := binary.NativeEndian.Uint32(b[word:])
		code := binary.NativeEndian.Uint32(b[word+4:])
		data := b[unix.SizeofCmsghdr:length]
		switch {
		case level == unix.IPPROTO_IP && code == unix.IP_TOS && len(data) >= 1:
			c.ecn = data[0] & ecnMask
		case level == unix.IPPROTO_IPV6 && code == unix.IPV6_TCLASS && len(data) >= 4:
			c.ecn = byte(binary.NativeEndian.Uint32(data)) & ecnMask
		case level == unix.SOL_SOCKET && code == unix.SO_RXQ_OVFL && len(data) >= 4:
			c.lost, c.counted = binary.NativeEndian.Uint32(data), true
		}
		b = b[min(uint64(len(b)), (length+word-1)&^(word-1)):]
	}
	return c
}

func machineWord(b []byte) uint64 {
	if len(b) == 4 {
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}
