//go:build !linux

package dat

import (
	"fmt"

	"github.com/datxdp/datxdp/link"
)

func openXDP(what string, _ Options) (device, error) {
	return device{}, fmt.Errorf("xdp:%s: AF_XDP is Linux only, use udp:ADDRESS: %w", what, link.ErrUnsupported)
}

func openAuto(what string, _ Options) (device, error) {
	return device{}, fmt.Errorf("auto:%s: AF_XDP is Linux only, use udp:ADDRESS: %w", what, link.ErrUnsupported)
}

func namespace() string { return "" }
