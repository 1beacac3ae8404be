//go:build !linux

package xdp

import (
	"fmt"

	"github.com/datxdp/datxdp/link"
)

// Device is the stub of an open interface: AF_XDP needs Linux.
type Device struct{}

// Open always fails with link.ErrUnsupported, after it has validated the options.
func Open(ifname string, o Options) (*Device, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("xdp: %s: AF_XDP needs Linux: %w", ifname, link.ErrUnsupported)
}

func (*Device) Name() string                { return "" }
func (*Device) Links() []link.Link          { return nil }
func (*Device) Mode() Mode                  { return Auto }
func (*Device) Counters() (Counters, error) { return Counters{}, link.ErrUnsupported }
func (*Device) Stats() link.Stats           { return link.Stats{} }
func (*Device) Stop() error                 { return nil }
func (*Device) Close() error                { return nil }

// guard is the stub of the socket that holds the device's port.
type guard struct{}
