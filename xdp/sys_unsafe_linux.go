package xdp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// option is a structure of fixed size for an AF_XDP socket option. It contains no pointers.
type option interface {
	uint32 | unix.XDPUmemReg | unix.XDPMmapOffsets | unix.XDPStatistics
}

// setOption calls setsockopt. It is sound because the kernel copies *v before the call returns.
func setOption[T option](fd, level, name int, v *T) error {
	_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(v)), unsafe.Sizeof(*v), 0)
	return errnoErr(e)
}

// getOption calls getsockopt. The kernel writes at most the size of *v; an older kernel writes less.
func getOption[T option](fd, level, name int, v *T) error {
	n := uint32(unsafe.Sizeof(*v))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(v)), uintptr(unsafe.Pointer(&n)), 0)
	return errnoErr(e)
}

func errnoErr(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// umemAddr returns the address that the kernel registers. It is sound because the mapping does not move.
func umemAddr(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// mapAgain replaces the mapping dst with a second mapping of src's pages. src must be a shared mapping of the same
// size. mapAgain calls mremap(2) with an old size of 0.
func mapAgain(src, dst []byte) error {
	_, _, e := unix.Syscall6(unix.SYS_MREMAP, uintptr(unsafe.Pointer(unsafe.SliceData(src))), 0, uintptr(len(src)),
		unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, uintptr(unsafe.Pointer(unsafe.SliceData(dst))), 0)
	return errnoErr(e)
}

// sendto makes the system call sendto without data, so that the kernel looks at the socket's tx ring. If raw is set,
// the Go scheduler does not notice the system call; the caller must then limit the duration of the call (see rawKick).
func sendto(fd int, raw bool) syscall.Errno {
	if raw {
		_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		return e
	}
	_, _, e := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return e
}

// recvfrom calls recvfrom without data, which makes the driver look at the fill ring.
func recvfrom(fd int) syscall.Errno {
	_, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return e
}

// channels is the kernel's struct ethtool_channels.
type channels struct {
	cmd         uint32
	maxRx       uint32
	_           [2]uint32 // maxima of tx and other
	maxCombined uint32
	rx, tx      uint32
	_           uint32 // other
	combined    uint32
}

// ringSizes is the kernel's struct ethtool_ringparam.
type ringSizes struct {
	cmd uint32
	_   [4]uint32 // maxima of rx, rx-mini, rx-jumbo and tx
	rx  uint32
	_   [3]uint32 // rx-mini, rx-jumbo, tx
}

// ethtoolDo calls ioctl(SIOCETHTOOL). The first field of *v is the command; the kernel reads or fills the rest.
func ethtoolDo[T channels | ringSizes](fd int, ifname string, v *T) error {
	var req struct { // struct ifreq with ifr_data
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer // keeps v alive and in place until the call returns
		_    [24 - unsafe.Sizeof(uintptr(0))]byte
	}
	copy(req.name[:unix.IFNAMSIZ-1], ifname)
	req.data = unsafe.Pointer(v)
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	return errnoErr(e)
}
