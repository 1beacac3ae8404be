package lab

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// randomOffset is where a load gives a random number: SKF_AD_OFF + SKF_AD_RANDOM of linux/filter.h.
const randomOffset = 1<<32 - 0x1000 + 56

// SetLoss makes a kernel socket lose a part, 0 to 1, of the packets that arrive for it, each by a
// draw of its own: a BPF program on the socket drops them before its protocol sees them. A program
// that was there is replaced.
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

// lossProgram keeps nothing of a packet where a random 32-bit number lies below a threshold, and all
// of it elsewhere.
func lossProgram(part float64) []unix.SockFilter {
	threshold := uint32(min(max(part, 0)*(1<<32), math.MaxUint32))
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: randomOffset},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: threshold, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: math.MaxUint32},
	}
}
