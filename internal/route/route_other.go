//go:build !linux

package route

import (
	"fmt"
	"net/netip"
	"time"
)

// neighbour and lookup are used on Linux only.
type (
	neighbour struct{}
	lookup    struct{}
)

// Table works on Linux only.
type Table struct{}

// Open returns an error that matches ErrUnsupported.
func Open(ifindex int) (*Table, error) {
	return nil, fmt.Errorf("route: open interface %d: %w", ifindex, ErrUnsupported)
}

// Interface returns an empty state.
func (*Table) Interface() Interface { return Interface{} }

// Resolve returns an error that matches ErrUnsupported.
func (*Table) Resolve(_, dst netip.AddrPort, _ time.Duration) (*Hop, error) {
	return nil, fmt.Errorf("route: resolve %v: %w", dst, ErrUnsupported)
}

// Known returns an error that matches ErrUnsupported.
func (*Table) Known(_, dst netip.AddrPort) (*Hop, error) {
	return nil, fmt.Errorf("route: resolve %v: %w", dst, ErrUnsupported)
}

// Answer always fails.
func (*Table) Answer(_, _ netip.AddrPort, _ [6]byte) (mac [6]byte, ok bool) { return mac, false }

// Release does nothing.
func (*Table) Release(*Hop) {}

// Close does nothing.
func (*Table) Close() error { return nil }

// AwaitAddress returns ErrUnsupported.
func AwaitAddress(netip.Addr, time.Duration) error { return ErrUnsupported }
