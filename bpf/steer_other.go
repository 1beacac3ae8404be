//go:build !linux || !(amd64 || arm64)

package bpf

import (
	"fmt"
	"net/netip"
	"runtime"
)

// Steer is the stub of an attached program: XDP needs Linux.
type Steer struct{}

func unsupported() error {
	return fmt.Errorf("bpf: %s/%s: %w", runtime.GOOS, runtime.GOARCH, ErrUnsupported)
}

// Attach always fails: this platform has no XDP.
func Attach(o Options) (*Steer, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return nil, unsupported()
}

// Occupied always fails: this platform has no XDP.
func Occupied(int) error { return unsupported() }

// SetAddresses fails.
func (s *Steer) SetAddresses([]netip.Addr) error { return unsupported() }

// Register fails.
func (s *Steer) Register(queue, fd int) error { return unsupported() }

// Unregister fails.
func (s *Steer) Unregister(queue int) error { return unsupported() }

// Attached fails.
func (s *Steer) Attached() (bool, error) { return false, unsupported() }

// Counters fails.
func (s *Steer) Counters() (Counters, error) { return Counters{}, unsupported() }

// Mode is Auto: nothing was granted.
func (s *Steer) Mode() Mode { return Auto }

// NativeRefusal is nil.
func (s *Steer) NativeRefusal() error { return nil }

// Close does nothing.
func (s *Steer) Close() error { return nil }
