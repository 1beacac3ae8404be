package main

import (
	"errors"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/tap"
)

// adapter is an open IA with the zone that everything of ours is in.
type adapter struct {
	ia *dat.IA
	pz *dat.PZ
	// attr is what was granted.
	attr dat.IAParam
	// hide takes it out of the metrics; nil if it is not there.
	hide func()
	// impaired are the layers that damage what it receives; flush completes the capture of it.
	impaired []*tap.Impaired
	flush    func() error
}

func openAdapter(h *host, s station) (a *adapter, err error) {
	a = &adapter{flush: h.capture.flush}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
			a = nil
		}
	}()
	o, err := a.options(h, s)
	if err != nil {
		return a, err
	}
	if a.ia, err = dat.Open(s.IA, o); err != nil {
		return a, err
	}
	if a.attr, err = a.ia.Query(); err != nil {
		return a, err
	}
	if a.pz, err = a.ia.CreatePZ(); err != nil {
		return a, err
	}
	if h.metrics != nil {
		if a.hide, err = h.metrics.add(s.IA, a.ia); err != nil {
			return a, err
		}
	}
	return a, nil
}

// options has the layers that go over the links: a capture sees what the protocol sees.
func (a *adapter) options(h *host, s station) (dat.Options, error) {
	o := dat.DefaultOptions()
	o.Port = s.Port
	o.Limits.KeepAlive, o.Limits.GiveUp = keepAlive, silence
	rates, err := tap.Parse(s.Impair)
	if err != nil {
		return o, err
	}
	if !rates.Zero() {
		o.Wrap = impairing(tap.Impair, rates, func(t *tap.Impaired) { a.impaired = append(a.impaired, t) })
	}
	if h.capture != nil {
		pcap, err := h.capture.begin()
		if err != nil {
			return o, err
		}
		o.Wrap = then(o.Wrap, over(pcap.Tap))
	}
	return o, nil
}

func (a *adapter) close() error {
	if a.hide != nil {
		a.hide()
	}
	var errs []error
	if a.pz != nil {
		errs = append(errs, a.pz.Free())
	}
	if a.ia != nil {
		errs = append(errs, within(openLimit, "closing the adapter", func() error { return a.ia.Close(dat.CloseGraceful) }))
	}
	return errors.Join(append(errs, a.flush())...)
}

// transport is what DAT crosses.
func (a *adapter) transport() string {
	if a.attr.Mode == transportUDP {
		return transportUDP
	}
	return transportXDP
}

// losses are the adapter's counters that a row reports. Packets that an impairment dropped count.
type losses struct{ retransmits, drops uint64 }

func (a *adapter) losses() losses {
	s, err := a.ia.Stats()
	if err != nil {
		return losses{} // it is closed
	}
	l := losses{s.Retransmits, s.Link.RxDropped + s.Link.TxDropped}
	for _, t := range a.impaired {
		l.drops += t.Counts().Dropped
	}
	return l
}

func (l losses) since(base losses) losses {
	return losses{l.retransmits - base.retransmits, l.drops - base.drops}
}
