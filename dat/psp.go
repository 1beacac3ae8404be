package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// PSP is a public service point (DAT_PSP_HANDLE): it listens on a connection qualifier.
type PSP struct {
	consumer
	ia   *IA
	qual ConnQual
	evd  *EVD
	over atomic.Bool
}

// CreatePSP listens on a qualifier of the adapter (dat_psp_create). Each connection request becomes
// an EventConnectionRequest on evd, whose free space is the backlog: a request that finds it full is
// refused. ErrConnQualInUse if somebody listens there.
func (ia *IA) CreatePSP(qual ConnQual, evd *EVD, flags PSPFlags) (*PSP, error) {
	if flags != PSPConsumer {
		return nil, fail(ErrInvalidParameter, "service point flags %d", flags)
	}
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if evd == nil || evd.feeds(ia, EVDCR) != nil {
		return nil, ErrInvalidHandle
	}
	p := &PSP{ia: ia, qual: qual, evd: evd}
	if err := ia.a.host.Listen(uint64(qual), p); err != nil {
		return nil, status(err)
	}
	evd.refs.take()
	ia.psps[p] = struct{}{}
	return p, nil
}

// Qual is the connection qualifier it listens on.
func (p *PSP) Qual() ConnQual { return p.qual }

// Arrive implements wire.Service; it is not for consumers.
func (p *PSP) Arrive(r *wire.Request) bool {
	if p.over.Load() {
		return false
	}
	cr := &CR{ia: p.ia, req: r}
	return p.evd.post(Event{Number: EventConnectionRequest, CR: cr, PSP: p, ConnQual: p.qual})
}

// end stops listening.
func (p *PSP) end() {
	if !p.over.Swap(true) {
		p.ia.a.host.Unlisten(uint64(p.qual))
	}
}

// Free stops listening (dat_psp_free). Requests that were delivered stay valid.
func (p *PSP) Free() error {
	if p == nil {
		return errHandlePSP
	}
	if err := p.ia.lock(); err != nil {
		return err
	}
	defer p.ia.mu.Unlock()
	if p.over.Load() {
		return errHandlePSP
	}
	p.end()
	delete(p.ia.psps, p)
	p.evd.refs.drop()
	return nil
}
