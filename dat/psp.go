package dat

import (
	"errors"
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// PSP is a public service point (DAT_PSP_HANDLE). It listens on a connection qualifier. Any goroutine may call the
// methods.
type PSP struct {
	consumer
	ia    *IA
	qual  ConnQual
	evd   *EVD
	flags PSPFlags
	ended atomic.Bool // freed, or the IA is closed
}

// PSPParam has the parameters of a public service point (DAT_PSP_PARAM).
type PSPParam struct {
	IA       *IA
	ConnQual ConnQual
	EVD      *EVD
	Flags    PSPFlags
}

// CreatePSPAny picks from numAnyQuals qualifiers, starting with firstAnyQual. IANA reserves the same range of ports for
// dynamic use.
const (
	firstAnyQual = 49152
	numAnyQuals  = 16384
)

// CreatePSP listens on a connection qualifier of the adapter (dat_psp_create). Each connection request becomes an
// EventConnectionRequest on evd.
//
// The queue length of evd is the backlog: the maximum number of requests that wait in evd. Each waiting request takes
// one slot of the backlog. While no slot is free, further requests are refused. Completions in evd do not take slots of
// the backlog, so a burst of requests cannot cause completions to be lost. Two dynamic thresholds keep one requester
// from filling a long backlog. A request is also refused in these two cases:
//
//   - The requester's address already holds at least 7 × the number of free slots. So one address can fill 7/8 of a
//     backlog, or all of a backlog of up to 7 slots.
//   - The requester's network (IPv4 /24, IPv6 /64) already holds at least 15 × the number of free slots. If the
//     requester's address holds no slot, and at least two slots are free, the limit of the network is 60 × the number
//     of free slots. So a new address is still admitted when other addresses of its network hold 15 × the number of
//     free slots.
//
// With PSPConsumer, the consumer passes an endpoint to CR.Accept. With PSPProvider, the provider creates an endpoint
// for each request, in state EPTentativeConnectionPending. CR.Query returns that endpoint. The consumer sets its zone
// and its dispatchers with Modify, and then calls CR.Accept with nil.
//
// Errors: ErrInvalidHandle (evd was not created with EVDCR), ErrInvalidParameter (flags, or endpoints with
// CompletionUnsignalled or CompletionSolicitedWait use evd), ErrConnQualInUse (a service point of any open of the
// adapter listens on the qualifier, or another process of this host listens on it at the adapter's address; see Open).
func (ia *IA) CreatePSP(qual ConnQual, evd *EVD, flags PSPFlags) (*PSP, error) {
	return ia.createPSP(evd, flags, func(p *PSP) error {
		p.qual = qual
		return ia.a.listen(qual, p)
	})
}

// CreatePSPAny is CreatePSP with a free qualifier that the provider picks (dat_psp_create_any). PSP.Qual returns that
// qualifier. If no qualifier is free, CreatePSPAny returns ErrConnQualUnavailable.
func (ia *IA) CreatePSPAny(evd *EVD, flags PSPFlags) (*PSP, error) {
	return ia.createPSP(evd, flags, func(p *PSP) error {
		for range numAnyQuals {
			p.qual = firstAnyQual + ConnQual(ia.a.quals.tried.Add(1)%numAnyQuals)
			if err := ia.a.listen(p.qual, p); !errors.Is(err, ErrConnQualInUse) {
				return err
			}
		}
		return fail(ErrConnQualUnavailable, "all qualifiers from %d to %d are in use", firstAnyQual, firstAnyQual+numAnyQuals-1)
	})
}

func (ia *IA) createPSP(evd *EVD, flags PSPFlags, listen func(*PSP) error) (*PSP, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if evd == nil || evd.checkFeed(ia, EVDCR) != nil {
		return nil, ErrInvalidHandle
	}
	if flags > PSPProvider {
		return nil, fail(ErrInvalidParameter, "unknown service point flags %d", flags)
	}
	if err := evd.addRequestFeed(); err != nil {
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

// lock locks the IA. It returns an error and does not lock if the service point is nil or freed, or if the IA is
// closed. The caller unlocks ia.mu.
func (p *PSP) lock() error {
	if p == nil {
		return errHandlePSP
	}
	if err := p.ia.lock(); err != nil {
		return err
	}
	if p.ended.Load() {
		p.ia.mu.Unlock()
		return errHandlePSP
	}
	return nil
}

// deliver queues a connection request on evd. If it returns false, the engine refuses the request. The owner of the
// engine calls deliver.
func (p *PSP) deliver(r *wire.Request) bool {
	if p.ended.Load() {
		return false
	}
	c := newCR(p.ia, r)
	return p.evd.enqueueWith(Event{Number: EventConnectionRequest, CR: c, PSP: p, ConnQual: p.qual}, func() {
		if p.flags == PSPProvider { // only now, because a request that is refused must cost little
			c.makeEP()
		}
	})
}

func (p *PSP) adapter() *IA { return p.ia }

// stopListening frees the qualifier and drops the reference to the dispatcher.
func (p *PSP) stopListening() {
	if !p.ended.Swap(true) {
		p.ia.a.unlisten(p.qual)
		p.evd.refs.drop()
	}
}

// Free stops listening (dat_psp_free). When Free has returned, the qualifier can be used again. Requests that have
// already been delivered remain valid.
func (p *PSP) Free() error {
	if err := p.lock(); err != nil {
		return err
	}
	defer p.ia.mu.Unlock()
	p.stopListening()
	delete(p.ia.psps, p)
	return nil
}
