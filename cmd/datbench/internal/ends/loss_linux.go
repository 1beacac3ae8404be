package ends

import (
	"syscall"

	"github.com/datxdp/datxdp/internal/lab"
)

// loseOn makes a kernel socket drop a fraction of the arriving packets.
func loseOn(c syscall.Conn, part float64) error { return lab.SetLoss(c, part) }
