//go:build !linux

package ends

import (
	"errors"
	"runtime"
	"syscall"
)

func loseOn(syscall.Conn, float64) error {
	return errors.New("kernel sockets cannot be made to lose packets on " + runtime.GOOS)
}
