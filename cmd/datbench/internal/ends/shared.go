package ends

import (
	"errors"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
)

// sharedTarget serves rows of kernel TCP while an idle adapter is open on the same interface. The rows show what an
// attached XDP program costs other traffic.
type sharedTarget struct {
	Target
	a *workload.Adapter
}

func newSharedTarget(h *workload.Host, s plan.Station) (Target, error) {
	a, err := workload.OpenAdapter(h, s)
	if err != nil {
		return nil, err
	}
	t, err := newTCPTarget(s)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return &sharedTarget{t, a}, nil
}

func (t *sharedTarget) Close() error { return errors.Join(t.Target.Close(), t.a.Close()) }

// sharedInitiator measures rows of kernel TCP while an idle adapter is open on the same interface. The mode of a row is
// the mode of this adapter.
type sharedInitiator struct {
	Initiator
	a *workload.Adapter
}

func newSharedInitiator(h *workload.Host, s plan.Station) (Initiator, error) {
	a, err := workload.OpenAdapter(h, s)
	if err != nil {
		return nil, err
	}
	i, err := newTCPInitiator(s, a.Attr.Mode)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return &sharedInitiator{i, a}, nil
}

func (i *sharedInitiator) Close() error { return errors.Join(i.Initiator.Close(), i.a.Close()) }
