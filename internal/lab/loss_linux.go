package lab

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// randomOffset is the load offset of a random number: SKF_AD_OFF + SKF_AD_RANDOM of linux/filter.h.
const randomOffset = 1<<32 - 0x1000 + 56

// SetLoss makes a kernel socket drop a fraction (0 to 1) of the arriving packets at random. A BPF program on the socket
// drops them before the protocol sees them. It replaces any earlier program of the socket.
//
// System calls: setsockopt(SO_ATTACH_FILTER).
func SetLoss(c syscall.Conn, part float64) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("lab: socket: %w", err)
	}
	program := lossProgram(part)
	var setErr error
	err = raw.Control(func(fd uintptr) {
		setErr = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
	if err := errors.Join(err, setErr); err != nil {
		return fmt.Errorf("lab: attach a program that loses packets: %w", err)
	}
	return nil
}

// lossProgram drops a packet if a random 32-bit number is below a threshold; otherwise it passes the packet.
func lossProgram(part float64) []unix.SockFilter {
	threshold := uint32(min(max(part, 0)*(1<<32), math.MaxUint32))
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: randomOffset},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: threshold, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: math.MaxUint32},
	}
}
