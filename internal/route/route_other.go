//go:build !linux

package route

import (
	"fmt"
	"net/netip"
)

// neighbour exists on Linux only.
type neighbour struct{}

// Table exists on Linux only; Open says so.
type Table struct{}

// Open returns an error that matches ErrUnsupported.
func Open(ifindex int) (*Table, error) {
	return nil, fmt.Errorf("route: open interface %d: %w", ifindex, ErrUnsupported)
}

// Interface is empty.
func (*Table) Interface() Interface { return Interface{} }

// Resolve returns an error that matches ErrUnsupported.
func (*Table) Resolve(dst netip.Addr) (*Hop, error) {
	return nil, fmt.Errorf("route: resolve %v: %w", dst, ErrUnsupported)
}

// Answer knows nobody.
func (*Table) Answer(netip.Addr, [6]byte) (mac [6]byte, ok bool) { return mac, false }

// Release does nothing.
func (*Table) Release(*Hop) {}

// Close does nothing.
func (*Table) Close() error { return nil }
