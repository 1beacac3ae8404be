package dat

import (
	"syscall"
	"unsafe"
)

// procmapQuery is struct procmap_query of linux/fs.h.
type procmapQuery struct {
	size, flags, addr           uint64
	start, end, rights          uint64 // output
	pageSize, offset, inode     uint64
	devMajor, devMinor          uint32
	nameSize, buildIDSize       uint32 // input: 0, because the name and the build ID are not needed
	nameAddress, buildIDAddress uint64
}

const (
	ioctlProcmapQuery = 3<<30 | unsafe.Sizeof(procmapQuery{})<<16 | 'f'<<8 | 17 // PROCMAP_QUERY
	procmapReadable   = 1                                                       // PROCMAP_QUERY_VMA_READABLE
	procmapWritable   = 2                                                       // PROCMAP_QUERY_VMA_WRITABLE
)

// queryMapping asks the kernel for the mapping that contains addr. The argument fd is an open file of /proc/self/maps.
// The error is ENOENT if no mapping contains addr, and ENOTTY on kernels before Linux 6.11.
//
// System calls: ioctl.
func queryMapping(fd int, addr uint64) (mapping, error) {
	q := procmapQuery{size: uint64(unsafe.Sizeof(procmapQuery{})), addr: addr}
	// Sound: the kernel writes at most the size that is encoded in the request number, and keeps no pointer.
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), ioctlProcmapQuery, uintptr(unsafe.Pointer(&q))); errno != 0 {
		return mapping{}, errno
	}
	m := mapping{start: q.start, end: q.end}
	if q.rights&procmapReadable != 0 {
		m.prot |= protRead
	}
	if q.rights&procmapWritable != 0 {
		m.prot |= protWrite
	}
	return m, nil
}
