package udplink

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// The ECN bits of the IPv4 TOS and the IPv6 traffic class, and their value "congestion experienced".
const (
	ecnMask = 3
	ecnCE   = 3
)

// control holds the control messages of a packet.
type control struct {
	ecn     byte
	lost    uint32
	counted bool // the kernel reported lost
	segment int  // size of the packets that the kernel merged; 0 if it merged none
}

// controlKind is the level and the type of a control message.
type controlKind struct{ level, code uint32 }

// nextControl returns the first control message of a list, and the rest of the list. A message is a struct cmsghdr
// {length, level, type} and data. length is one machine word, and each message is aligned to a word. A malformed
// message ends the list.
func nextControl(b []byte) (kind controlKind, data, rest []byte, ok bool) {
	const word = unix.SizeofCmsghdr - 8
	if len(b) < unix.SizeofCmsghdr {
		return kind, nil, nil, false
	}
	length := machineWord(b[:word])
	if length < unix.SizeofCmsghdr || length > uint64(len(b)) {
		return kind, nil, nil, false
	}
	kind = controlKind{binary.NativeEndian.Uint32(b[word:]), binary.NativeEndian.Uint32(b[word+4:])}
	return kind, b[unix.SizeofCmsghdr:length], b[min(uint64(len(b)), (length+word-1)&^(word-1)):], true
}

// parseControl parses the control messages of a received packet.
func parseControl(b []byte) (c control) {
	for kind, data, rest, ok := nextControl(b); ok; kind, data, rest, ok = nextControl(rest) {
		switch {
		case kind == controlKind{unix.IPPROTO_IP, unix.IP_TOS} && len(data) >= 1:
			c.ecn = data[0] & ecnMask
		case kind == controlKind{unix.IPPROTO_IPV6, unix.IPV6_TCLASS} && len(data) >= 4:
			c.ecn = byte(binary.NativeEndian.Uint32(data)) & ecnMask
		case kind == controlKind{unix.SOL_SOCKET, unix.SO_RXQ_OVFL} && len(data) >= 4:
			c.lost, c.counted = binary.NativeEndian.Uint32(data), true
		case kind == controlKind{unix.IPPROTO_UDP, unix.UDP_GRO} && len(data) >= 4:
			c.segment = int(int32(binary.NativeEndian.Uint32(data)))
		}
	}
	return c
}

// putControl writes the header of a control message with size bytes of data to b.
func putControl(b []byte, kind controlKind, size int) {
	const word = unix.SizeofCmsghdr - 8
	if length := unix.CmsgLen(size); word == 4 {
		binary.NativeEndian.PutUint32(b, uint32(length))
	} else {
		binary.NativeEndian.PutUint64(b, uint64(length))
	}
	binary.NativeEndian.PutUint32(b[word:], kind.level)
	binary.NativeEndian.PutUint32(b[word+4:], kind.code)
}

func machineWord(b []byte) uint64 {
	if len(b) == 4 {
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}
