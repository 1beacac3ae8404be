package labtest

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of linux/userfaultfd.h.
const (
	uffdAPI      = 0xaa
	uffdioAPI    = 0xc018aa3f
	uffdioAdd    = 0xc020aa00
	uffdioZero   = 0xc020aa04
	uffdMissing  = 1
	getsFeatures = 0x3a // ETHTOOL_GFEATURES
)

// openFaults returns a descriptor from which the first access to a page of mem is read. The access waits for zeroPage.
func openFaults(mem []byte) (fd int, err error) {
	n, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	fd = int(n)
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if err = control(fd, uffdioAPI, &[4]uint64{uffdAPI}); err != nil {
		return -1, err
	}
	return fd, control(fd, uffdioAdd, &[4]uint64{addressOf(mem), uint64(len(mem)), uffdMissing})
}

// zeroPage supplies the missing page mem.
func zeroPage(fd int, mem []byte) error {
	return control(fd, uffdioZero, &[4]uint64{addressOf(mem), uint64(len(mem))})
}

// addressOf is sound for memory that Go does not move: that of unix.Mmap.
func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&mem[0]))) }

func control(fd int, request uintptr, arg *[4]uint64) error {
	// Sound: the kernel reads and writes at most 32 bytes of arg during the call.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
		return errno
	}
	return nil
}

// getFeatures asks for the features of an interface. The kernel copies arg after the first 4 bytes while it holds RTNL.
func getFeatures(device string, arg []byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	binary.NativeEndian.PutUint32(arg, getsFeatures)
	var ifreq struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // union of struct ifreq
	}
	copy(ifreq.name[:], device)
	ifreq.data = unsafe.Pointer(&arg[0])
	// Sound: ifreq and the memory of unix.Mmap that it points to stay in place during the call.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifreq))); errno != 0 {
		return errno
	}
	return nil
}
