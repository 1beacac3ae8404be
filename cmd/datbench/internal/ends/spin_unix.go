//go:build unix

package ends

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// spins is the number of reads without result before the deadline of the connection is checked.
const spins = 1 << 12

// spinner is a connection of kernel TCP whose Read does not block: it repeats the system call until there are bytes.
type spinner struct {
	net.Conn
	raw syscall.RawConn
}

func spinning(c net.Conn) net.Conn {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return c // closed; its next call says so
	}
	return &spinner{c, raw}
}

func (s *spinner) Read(p []byte) (n int, err error) {
	again := func(err error) bool { return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) }
	for err = syscall.EAGAIN; again(err); { // again until the deadline has passed
		if passed := s.raw.Read(func(fd uintptr) bool {
			for i := 0; i < spins && again(err); i++ {
				n, err = syscall.Read(int(fd), p)
			}
			return true
		}); passed != nil {
			return 0, passed
		}
	}
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}
