package main

import (
	"context"
	"fmt"

	"github.com/datxdp/datxdp/internal/result"
)

// target answers an initiator, on goroutines of its own, until it is closed. close reports what
// went wrong while it served.
type target interface{ close() error }

// initiator measures one row at a time. One goroutine uses it.
type initiator interface {
	run(ctx context.Context, row Spec) (result.Result, error)
	close() error
}

// newTarget opens the end that answers at a station.
func newTarget(h *host, s station) (target, error) {
	switch s.Kind {
	case kindDAT:
		return newDATTarget(h, s)
	case kindRaw:
		return newRawTarget(s)
	case kindTCP:
		return newTCPTarget(s)
	}
	return nil, fmt.Errorf("no traffic of kind %q", s.Kind)
}

// newInitiator opens the end that measures from a station.
func newInitiator(h *host, s station) (initiator, error) {
	switch s.Kind {
	case kindDAT:
		return newDATInitiator(h, s)
	case kindRaw:
		return newRawInitiator(s)
	case kindTCP:
		return newTCPInitiator(s)
	}
	return nil, fmt.Errorf("no traffic of kind %q", s.Kind)
}
