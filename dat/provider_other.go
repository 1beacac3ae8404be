//go:build !linux

package dat

import (
	"fmt"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/link"
)

func openXDP(_ ianame.Name, _ Options) (device, error) {
	return device{}, fmt.Errorf("AF_XDP is Linux only, use udp:ADDRESS: %w", link.ErrUnsupported)
}

func openAuto(_ ianame.Name, _ Options) (device, error) {
	return device{}, fmt.Errorf("AF_XDP is Linux only, use udp:ADDRESS: %w", link.ErrUnsupported)
}

func namespace() string { return "" }

func findInterface(string) error { return nil }
