package ends

import (
	"context"
	"fmt"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// Target serves an initiator on its own goroutines until it is closed. Close returns the errors of this service.
type Target interface{ Close() error }

// Initiator measures one row at a time. One goroutine uses it.
type Initiator interface {
	Run(ctx context.Context, row plan.Spec) (result.Result, error)
	Close() error
}

// NewTarget opens the target at a station.
func NewTarget(h *workload.Host, s plan.Station) (Target, error) {
	switch s.Kind {
	case plan.KindDAT:
		return newDATTarget(h, s)
	case plan.KindRaw:
		return newRawTarget(s)
	case plan.KindTCP:
		return newTCPTarget(s)
	case plan.KindTCPShared:
		return newSharedTarget(h, s)
	case plan.KindStream:
		return newStreamTarget(h, s)
	}
	return nil, fmt.Errorf("no traffic of kind %q", s.Kind)
}

// NewInitiator opens the initiator at a station.
func NewInitiator(h *workload.Host, s plan.Station) (Initiator, error) {
	switch s.Kind {
	case plan.KindDAT:
		return newDATInitiator(h, s)
	case plan.KindRaw:
		return newRawInitiator(s)
	case plan.KindTCP:
		return newTCPInitiator(s, kernelMode)
	case plan.KindTCPShared:
		return newSharedInitiator(h, s)
	case plan.KindStream:
		return newStreamInitiator(h, s)
	}
	return nil, fmt.Errorf("no traffic of kind %q", s.Kind)
}
