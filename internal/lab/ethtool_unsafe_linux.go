package lab

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolValue is struct ethtool_value of linux/ethtool.h.
type ethtoolValue struct{ cmd, data uint32 }

// ifreqData is struct ifreq of linux/if.h with the union member ifr_data.
type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [24 - unsafe.Sizeof(uintptr(0))]byte
}

// The kernel copies 40 bytes on 64-bit machines.
const _ = -(unsafe.Sizeof(ifreqData{}) ^ (unix.IFNAMSIZ + 24))

// ethtool runs one command that reads or sets a single value.
//
// System calls: ioctl(SIOCETHTOOL).
func ethtool(fd int, ifname string, cmd, data uint32) (uint32, error) {
	value := &ethtoolValue{cmd: cmd, data: data}
	// Sound: value is reachable through ifr, a Go pointer in a typed field, so the collector sees it. The Pinner keeps
	// value in place while the kernel follows the pointer.
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(value)
	ifr := &ifreqData{data: unsafe.Pointer(value)}
	copy(ifr.name[:unix.IFNAMSIZ-1], ifname)
	// Sound: the conversion to uintptr is in the argument list of the call, which keeps ifr alive.
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(ifr)))
	if errno != 0 {
		return 0, errno
	}
	return value.data, nil
}
