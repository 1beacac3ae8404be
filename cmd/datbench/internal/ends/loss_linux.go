package ends

import (
	"syscall"

	"github.com/datxdp/datxdp/internal/lab"
)

// loseOn makes a socket of the kernel lose a part of what arrives for it.
func loseOn(c syscall.Conn, part float64) error { return lab.SetLoss(c, part) }
