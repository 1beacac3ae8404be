package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// PSP is a public service point (DAT_PSP_HANDLE): it listens on a connection qualifier. All its methods
// may be called by any goroutine.
type PSP struct {
	consumer
	ia    *IA
	qual  ConnQual
	evd   *EVD
	flags PSPFlags
	over  atomic.Bool
}

// PSPParam describes a public service point (DAT_PSP_PARAM).
type PSPParam struct {
	IA       *IA
	ConnQual ConnQual
	EVD      *EVD
	Flags    PSPFlags
}

// Qualifiers that CreatePSPAny picks from: the range that the IANA leaves for such use.
const (
	firstAnyQual = 49152
	numAnyQuals  = 16384
)

// servicePoint is what listens on a qualifier.
type servicePoint interface {
	arrive(*wire.Request) bool
	adapter() *IA
}

// service is a service point as the protocol sees it.
type service struct{ servicePoint }

// Arrive implements wire.Service.
func (s service) Arrive(r *wire.Request) bool { return s.arrive(r) }

var (
	_ servicePoint = (*PSP)(nil)
	_ servicePoint = (*RSP)(nil)
)

// CreatePSP listens on a qualifier of the adapter (dat_psp_create). Each connection request becomes
// an EventConnectionRequest on evd, whose queue length is the backlog: a request that finds so many others waiting is
// refused. So is one from an address that has 7 times as many requests waiting as there are places free, or whose network
// (IPv4 /24, IPv6 /64) has 15 times as many: an address that is alone gets all of a backlog up to 7 and 7/8 of a longer one, and
// cannot keep others out. Requests take no place of other events, so that a burst of them makes no completion overflow.
//
// With PSPConsumer, the consumer gives an endpoint to CR.Accept. With PSPProvider, each request
// comes with one, EPTentativeConnectionPending, that CR.Query names: Modify gives it a zone and
// dispatchers before CR.Accept with nil.
//
// Errors: ErrInvalidHandle (evd does not take EVDCR), ErrInvalidParameter (flags, or evd has unsignalled or
// solicited streams), ErrConnQualInUse if somebody listens there, through whichever open of the adapter.
func (ia *IA) CreatePSP(qual ConnQual, evd *EVD, flags PSPFlags) (*PSP, error) {
	return ia.createPSP(evd, flags, func(p *PSP) error {
		p.qual = qual
		return status(ia.a.host.Listen(uint64(qual), service{p}))
	})
}

// CreatePSPAny is CreatePSP on a qualifier that the provider picks and Qual tells
// (dat_psp_create_any). ErrConnQualUnavailable when none is left.
func (ia *IA) CreatePSPAny(evd *EVD, flags PSPFlags) (*PSP, error) {
	return ia.createPSP(evd, flags, func(p *PSP) error {
		for range numAnyQuals {
			p.qual = firstAnyQual + ConnQual(ia.a.quals.Add(1)%numAnyQuals)
			if ia.a.host.Listen(uint64(p.qual), service{p}) == nil {
				return nil
			}
		}
		return fail(ErrConnQualUnavailable, "all of %d to %d are in use", firstAnyQual, firstAnyQual+numAnyQuals-1)
	})
}

func (ia *IA) createPSP(evd *EVD, flags PSPFlags, listen func(*PSP) error) (*PSP, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if evd == nil || evd.feeds(ia, EVDCR) != nil {
		return nil, ErrInvalidHandle
	}
	if flags > PSPProvider {
		return nil, fail(ErrInvalidParameter, "service point flags %d", flags)
	}
	if err := evd.serve(); err != nil {
		return nil, err
	}
	p := &PSP{ia: ia, evd: evd, flags: flags}
	if err := listen(p); err != nil {
		evd.refs.drop()
		return nil, err
	}
	ia.psps[p] = struct{}{}
	return p, nil
}

// Qual is the connection qualifier it listens on.
func (p *PSP) Qual() ConnQual { return p.qual }

// Query describes the service point (dat_psp_query).
func (p *PSP) Query() (PSPParam, error) {
	if err := p.lock(); err != nil {
		return PSPParam{}, err
	}
	defer p.ia.mu.Unlock()
	return PSPParam{IA: p.ia, ConnQual: p.qual, EVD: p.evd, Flags: p.flags}, nil
}

// lock locks the adapter of a service point that was not freed. The caller unlocks it after success.
func (p *PSP) lock() error {
	if p == nil {
		return errHandlePSP
	}
	if err := p.ia.lock(); err != nil {
		return err
	}
	if p.over.Load() {
		p.ia.mu.Unlock()
		return errHandlePSP
	}
	return nil
}

// arrive takes a connection request; false refuses it. The owner of the engine calls it.
func (p *PSP) arrive(r *wire.Request) bool {
	if p.over.Load() {
		return false
	}
	c := newCR(p.ia, r)
	if p.flags == PSPProvider {
		c.makeEP()
	}
	return p.evd.post(Event{Number: EventConnectionRequest, CR: c, PSP: p, ConnQual: p.qual})
}

func (p *PSP) adapter() *IA { return p.ia }

// end stops listening.
func (p *PSP) end() {
	if !p.over.Swap(true) {
		p.ia.a.host.Unlisten(uint64(p.qual))
		p.evd.refs.drop()
	}
}

// Free stops listening (dat_psp_free): the qualifier is free when it returns. Requests that were
// delivered stay valid.
func (p *PSP) Free() error {
	if err := p.lock(); err != nil {
		return err
	}
	defer p.ia.mu.Unlock()
	p.end()
	delete(p.ia.psps, p)
	return nil
}
