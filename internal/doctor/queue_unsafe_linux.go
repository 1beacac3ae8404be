package doctor

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sizes of the smallest AF_XDP socket.
const (
	bindFrame = 4096
	bindSlots = 64
)

// bindQueue binds an AF_XDP socket to a queue in copy mode and closes the socket. EBUSY means that another socket has
// the queue.
//
// System calls: socket, mmap, setsockopt, bind, munmap, close.
func bindQueue(ifindex, queue int) error {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	mem, err := unix.Mmap(-1, 0, bindFrame*bindSlots, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(mem) }() // the kernel keeps the pages until the socket is closed
	// Sound: the mapping is not in the Go heap, so its address does not change. It outlives the call.
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&mem[0]))), Len: uint64(len(mem)), Size: bindFrame}
	// The conversion is in the argument list of the call, which keeps reg alive.
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_UMEM_REG,
		uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0)
	if errno != 0 {
		return errno
	}
	var errs []error
	for _, ring := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING} {
		errs = append(errs, unix.SetsockoptInt(fd, unix.SOL_XDP, ring, bindSlots))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrXDP{Flags: unix.XDP_COPY, Ifindex: uint32(ifindex), QueueID: uint32(queue)})
}
