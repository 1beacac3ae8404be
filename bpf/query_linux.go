package bpf

import (
	"encoding/binary"
	"fmt"
	"syscall"
)

// attached is an XDP program on an interface, as reported by netlink.
type attached struct {
	id   uint32
	mode string
}

// Attributes of linux/if_link.h that package syscall does not have.
const (
	iflaXDP          = 43
	iflaXDPDrvProgID = 5
	iflaXDPSkbProgID = 6
	iflaXDPHwProgID  = 7
)

// Layout of linux/rtnetlink.h and linux/netlink.h.
const (
	ifinfomsgIndex = 4         // offset of ifi_index
	nlaTypeMask    = 1<<14 - 1 // the bits above are flags
	progIDSize     = 4
)

// queryAttached returns the XDP programs on an interface of the calling thread's namespace.
//
// System calls: netlink RTM_GETLINK.
func queryAttached(ifindex int) ([]attached, error) {
	dump, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("bpf: netlink: list interfaces: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(dump)
	if err != nil {
		return nil, fmt.Errorf("bpf: netlink: list interfaces: %w", err)
	}
	for _, m := range messages {
		if m.Header.Type != syscall.RTM_NEWLINK || len(m.Data) < syscall.SizeofIfInfomsg ||
			int(binary.NativeEndian.Uint32(m.Data[ifinfomsgIndex:])) != ifindex {
			continue
		}
		return attachedIn(m.Data[syscall.SizeofIfInfomsg:]), nil
	}
	return nil, fmt.Errorf("bpf: netlink: interface %d is not in the list", ifindex)
}

// attachedIn reads the programs from the attributes of one interface.
func attachedIn(attrs []byte) (progs []attached) {
	modes := map[uint16]string{iflaXDPDrvProgID: "native", iflaXDPSkbProgID: "generic", iflaXDPHwProgID: "offload"}
	eachAttr(attrs, func(kind uint16, nested []byte) {
		if kind != iflaXDP {
			return
		}
		eachAttr(nested, func(kind uint16, value []byte) {
			if mode := modes[kind]; mode != "" && len(value) >= progIDSize {
				progs = append(progs, attached{id: binary.NativeEndian.Uint32(value), mode: mode})
			}
		})
	})
	return progs
}

// eachAttr calls fn for each attribute. It stops at an attribute that exceeds its message.
func eachAttr(b []byte, fn func(kind uint16, value []byte)) {
	for len(b) >= syscall.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < syscall.SizeofRtAttr || size > len(b) {
			return
		}
		fn(binary.NativeEndian.Uint16(b[2:])&nlaTypeMask, b[syscall.SizeofRtAttr:size])
		b = b[min(len(b), (size+syscall.RTA_ALIGNTO-1)&^(syscall.RTA_ALIGNTO-1)):]
	}
}
