package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// PSP is a public service point (DAT_PSP_HANDLE): it listens on a connection qualifier. Any goroutine may call its
// methods.
type PSP struct {
	consumer
	ia    *IA
	qual  ConnQual
	evd   *EVD
	flags PSPFlags
	over  atomic.Bool // freed, or the IA is closed
}

// PSPParam has the parameters of a public service point (DAT_PSP_PARAM).
type PSPParam struct {
	IA       *IA
	ConnQual ConnQual
	EVD      *EVD
	Flags    PSPFlags
}

// CreatePSPAny picks from these qualifiers: the range that IANA reserves for dynamic use.
const (
	firstAnyQual = 49152
	numAnyQuals  = 16384
)

// servicePoint is a PSP or an RSP.
type servicePoint interface {
	arrive(*wire.Request) bool
	adapter() *IA
}

// service adapts a servicePoint to wire.Service, so that Arrive is no method of the exported types.
type service struct{ servicePoint }

// Arrive implements wire.Service.
func (s service) Arrive(r *wire.Request) bool { return s.arrive(r) }

var (
	_ servicePoint = (*PSP)(nil)
	_ servicePoint = (*RSP)(nil)
)

// CreatePSP listens on a connection qualifier of the adapter (dat_psp_create). Each connection request becomes an
// EventConnectionRequest on evd. The queue length of evd is the backlog: a request is refused if that many requests
// wait. Requests use no slots of other events, so a burst of requests makes no completion overflow.
//
// One requester cannot fill the backlog for others. A request is also refused if requests of its address hold at least 7
// times as many slots as are free, or requests of its network (IPv4 /24, IPv6 /64) at least 15 times as many. A single
// address thus gets the whole backlog if that is at most 7, and 7/8 of a longer one.
//
// With PSPConsumer, the consumer passes an endpoint to CR.Accept. With PSPProvider, each request comes with an
// endpoint in EPTentativeConnectionPending, which CR.Query returns. The consumer sets its zone and dispatchers with
// Modify, then calls CR.Accept with nil.
//
// Errors: ErrInvalidHandle (evd does not accept EVDCR), ErrInvalidParameter (flags, or evd has unsignalled or
// solicited streams), ErrConnQualInUse if a service point of any open of the adapter listens there.
func (ia *IA) CreatePSP(qual ConnQual, evd *EVD, flags PSPFlags) (*PSP, error) {
	return ia.createPSP(evd, flags, func(p *PSP) error {
		p.qual = qual
		return status(ia.a.host.Listen(uint64(qual), service{p}))
	})
}

// CreatePSPAny is CreatePSP on a qualifier that the provider picks (dat_psp_create_any); Qual returns it. It returns
// ErrConnQualUnavailable if none is free.
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

// Qual returns the connection qualifier of the service point.
func (p *PSP) Qual() ConnQual { return p.qual }

// Query returns the parameters of the service point (dat_psp_query).
func (p *PSP) Query() (PSPParam, error) {
	if err := p.lock(); err != nil {
		return PSPParam{}, err
	}
	defer p.ia.mu.Unlock()
	return PSPParam{IA: p.ia, ConnQual: p.qual, EVD: p.evd, Flags: p.flags}, nil
}

// lock locks the IA of a service point that is not freed. It fails, without the lock, on a freed one. The caller
// unlocks ia.mu.
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

// arrive delivers a connection request. It returns false to refuse the request. The owner of the engine calls it.
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

// Free stops listening (dat_psp_free). The qualifier is free when Free returns. Requests that were delivered stay
// valid.
func (p *PSP) Free() error {
	if err := p.lock(); err != nil {
		return err
	}
	defer p.ia.mu.Unlock()
	p.end()
	delete(p.ia.psps, p)
	return nil
}
