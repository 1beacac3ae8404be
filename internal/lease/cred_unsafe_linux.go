package lease

import (
	"syscall"
	"unsafe"
)

// soPeerGroups is SO_PEERGROUPS of linux/socket.h, which package syscall does not have.
const soPeerGroups = 59

// firstGroups is the number of groups that one call reads. A user with more needs another call.
const firstGroups = 64

// peerGroups returns the supplementary groups of the peer of a Unix socket.
func peerGroups(fd int) ([]uint32, error) {
	groups := make([]uint32, firstGroups)
	for range 2 {
		size := uint32(4 * len(groups))
		// The kernel writes at most size bytes, which groups has, and keeps neither pointer.
		_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), syscall.SOL_SOCKET, soPeerGroups,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0) // as above
		switch errno {
		case 0:
			return groups[:size/4], nil
		case syscall.ERANGE:
			groups = make([]uint32, size/4) // the kernel returns the size that it needs
		default:
			return nil, errno
		}
	}
	return nil, syscall.ERANGE
}
