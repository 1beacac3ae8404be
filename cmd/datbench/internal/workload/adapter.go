package workload

import (
	"errors"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/tap"
	"github.com/datxdp/datxdp/dat"
)

// Adapter is an open IA with one protection zone for all objects of datbench.
type Adapter struct {
	IA *dat.IA
	pz *dat.PZ
	// Attr holds the attributes that were granted.
	Attr dat.IAParam
	// removeMetrics removes the adapter from the metrics; nil if the metrics do not contain the adapter.
	removeMetrics func()
	// impaired are the link layers that impair received packets. flush completes the capture.
	impaired []*tap.Impaired
	flush    func() error
}

func OpenAdapter(h *Host, s plan.Station) (a *Adapter, err error) {
	a = &Adapter{flush: h.Capture.flush}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
			a = nil
		}
	}()
	o, err := a.options(h, s)
	if err != nil {
		return a, err
	}
	if a.IA, err = dat.Open(s.IA, o); err != nil {
		return a, err
	}
	if a.Attr, err = a.IA.Query(); err != nil {
		return a, err
	}
	if a.pz, err = a.IA.CreatePZ(); err != nil {
		return a, err
	}
	if h.metrics != nil {
		if a.removeMetrics, err = h.metrics.add(s.IA, a.IA); err != nil {
			return a, err
		}
	}
	return a, nil
}

// options returns the adapter's options. They contain the layers that impair and capture the packets of its links. The
// capture shows packets as the protocol receives them, after the impairment.
func (a *Adapter) options(h *Host, s plan.Station) (dat.Options, error) {
	o := dat.DefaultOptions()
	o.Port, o.Logger = s.Port, h.Logger
	o.Limits.KeepAlive, o.Limits.GiveUp = KeepAlive, Silence
	rates, err := tap.Parse(s.Impair)
	if err != nil {
		return o, err
	}
	if !rates.Zero() {
		o.Wrap = impairing(tap.Impair, rates, func(t *tap.Impaired) { a.impaired = append(a.impaired, t) })
	}
	if h.Capture != nil {
		pcap, err := h.Capture.begin()
		if err != nil {
			return o, err
		}
		o.Wrap = compose(o.Wrap, wrapWith(pcap.Tap))
	}
	return o, nil
}

func (a *Adapter) Close() error {
	if a.removeMetrics != nil {
		a.removeMetrics()
	}
	var errs []error
	if a.pz != nil {
		errs = append(errs, a.pz.Free())
	}
	if a.IA != nil {
		errs = append(errs, plan.Within(plan.OpenLimit, "closing the adapter", func() error { return a.IA.CloseWith(dat.CloseGraceful) }))
	}
	return errors.Join(append(errs, a.flush())...)
}

// transport returns the transport of DAT: xdp or udp.
func (a *Adapter) transport() string {
	if a.Attr.Mode == plan.TransportUDP {
		return plan.TransportUDP
	}
	return plan.TransportXDP
}

// Losses has the adapter's counters that a row reports. drops includes the packets that an impairment dropped.
type Losses struct{ Retransmits, Drops uint64 }

func (a *Adapter) Losses() Losses {
	s, err := a.IA.Stats()
	if err != nil {
		return Losses{} // the adapter is closed
	}
	l := Losses{s.Retransmits, s.Link.RxDropped + s.Link.TxDropped}
	for _, t := range a.impaired {
		l.Drops += t.Counts().Dropped
	}
	return l
}

func (l Losses) Since(base Losses) Losses {
	return Losses{l.Retransmits - base.Retransmits, l.Drops - base.Drops}
}
