//go:build !linux

package rawbench

import (
	"fmt"
	"runtime"
)

func openPort(Config) (port, error) {
	return nil, fmt.Errorf("rawbench: AF_XDP on %s: %w", runtime.GOOS, ErrEngine)
}
