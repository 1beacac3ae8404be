//go:build linux

package udplink

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is the kernel's struct mmsghdr. Go pads it in the same way.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// recvmmsg receives into msgs and returns the number of packets. It does not block.
func recvmmsg(fd int, msgs []mmsghdr) (int, error) { return recvmmsgFlags(fd, msgs, unix.MSG_DONTWAIT) }

// recvErrors is recvmmsg on the error queue.
func recvErrors(fd int, msgs []mmsghdr) (int, error) {
	return recvmmsgFlags(fd, msgs, unix.MSG_DONTWAIT|unix.MSG_ERRQUEUE)
}

func recvmmsgFlags(fd int, msgs []mmsghdr, flags uintptr) (int, error) {
	// Sound: msgs is not empty and outlives the call. The memory it points to is reachable through typed pointers, and
	// the heap does not move.
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd),
		uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// sendmmsg sends msgs and returns how many the kernel accepted. err is the error of the next message.
func sendmmsg(fd int, msgs []mmsghdr) (int, error) {
	// Sound: as in recvmmsg.
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd),
		uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
