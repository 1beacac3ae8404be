package main

import (
	"context"
	"fmt"
	"time"

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

// host is what the ends of one process share.
type host struct {
	// metrics shows the adapters that are open; nil if nobody asked.
	metrics *shown
	// capture is what adapters write their packets to; nil if nobody asked.
	capture *capture
	// tell is called with each interval of a row, by the goroutine that measures; nil if nobody asked.
	tell func(Spec, result.Interval)
	// job tells the rows of this process from others. wait is how long a server that is taken is waited for, which
	// waiting tells of.
	job     uint64
	wait    time.Duration
	waiting func(string)
}

func (h *host) newTarget(s station) (target, error) {
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

func (h *host) newInitiator(s station) (initiator, error) {
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
