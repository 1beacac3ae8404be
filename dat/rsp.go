package dat

import (
	"sync"

	"github.com/datxdp/datxdp/wire"
)

// RSP is a reserved service point (DAT_RSP_HANDLE): it listens on a connection qualifier for one
// request, with one endpoint. All its methods may be called by any goroutine.
type RSP struct {
	consumer
	ia   *IA
	qual ConnQual
	evd  *EVD

	mu    sync.Mutex // taken after an IA's and an EP's, also by engines
	state rspState
	ep    *EP   // nil until a request comes if the provider is to make it
	hold  *hold // by which it has the endpoint
}

type rspState uint8

const (
	rspListening rspState = iota
	rspUsed               // a request came
	rspFreed
)

// RSPParam describes a reserved service point (DAT_RSP_PARAM).
type RSPParam struct {
	IA       *IA
	ConnQual ConnQual
	EVD      *EVD
	EP       *EP // nil until a request comes, if the provider makes it
}

// CreateRSP listens on a qualifier of the adapter for one connection request (dat_rsp_create), which
// becomes an EventConnectionRequest on evd. The endpoint, which must be unconnected, is EPReserved until
// then and EPPassiveConnectionPending afterwards; with nil the provider makes one, which is
// EPTentativeConnectionPending. CR.Query names it, and CR.Accept takes nil.
//
// Further requests find no listener. A service point that was used stays a handle until Free, but no
// longer keeps its dispatcher, its qualifier or the adapter from being let go.
//
// Errors: ErrInvalidHandle (ep, or evd does not take EVDCR), ErrInvalidState (ep is not unconnected),
// ErrInvalidParameter (evd has unsignalled or solicited streams), ErrConnQualInUse.
func (ia *IA) CreateRSP(qual ConnQual, ep *EP, evd *EVD) (*RSP, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if evd == nil || evd.feeds(ia, EVDCR) != nil {
		return nil, ErrInvalidHandle
	}
	r := &RSP{ia: ia, qual: qual, evd: evd, ep: ep}
	if ep != nil {
		if err := ep.lock(); err != nil {
			return nil, err
		}
		defer ep.mu.Unlock()
		if ep.ia.a != ia.a {
			return nil, ErrInvalidHandle
		}
		if err := ep.may(callReserve); err != nil {
			return nil, err
		}
	}
	r.mu.Lock() // a request that comes now waits
	defer r.mu.Unlock()
	if err := evd.serve(); err != nil {
		return nil, err
	}
	if err := ia.a.host.Listen(uint64(qual), service{r}); err != nil {
		evd.refs.drop()
		return nil, status(err)
	}
	if ep != nil {
		r.hold = ep.reserve()
	}
	ia.rsps[r] = struct{}{}
	return r, nil
}

// Query describes the service point (dat_rsp_query).
func (r *RSP) Query() (RSPParam, error) {
	if err := r.lock(); err != nil {
		return RSPParam{}, err
	}
	defer r.unlock()
	return RSPParam{IA: r.ia, ConnQual: r.qual, EVD: r.evd, EP: r.ep}, nil
}

// Free ends the service point (dat_rsp_free). If no request came, it stops listening and its endpoint is
// unconnected again. Otherwise request and endpoint stay as they are.
func (r *RSP) Free() error {
	if err := r.lock(); err != nil {
		return err
	}
	defer r.unlock()
	r.stop()
	delete(r.ia.rsps, r)
	return nil
}

// lock locks a service point that was not freed, and its adapter. The caller unlocks it after success.
func (r *RSP) lock() error {
	if r == nil {
		return errHandleRSP
	}
	if err := r.ia.lock(); err != nil {
		return err
	}
	r.mu.Lock()
	if r.state == rspFreed {
		r.unlock()
		return errHandleRSP
	}
	return nil
}

func (r *RSP) unlock() {
	r.mu.Unlock()
	r.ia.mu.Unlock()
}

// arrive takes a connection request; false refuses it. The owner of the engine calls it.
func (r *RSP) arrive(req *wire.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != rspListening {
		return false
	}
	c := newCR(r.ia, req)
	if r.ep == nil {
		c.makeEP()
	} else {
		c.ep = r.ep
		r.ep.arrive(&hold{EPPassiveConnectionPending, c})
	}
	request := Event{Number: EventConnectionRequest, CR: c, RSP: r, ConnQual: r.qual}
	if !r.evd.postAfter(request, r.unlisten) { // who takes the event finds the qualifier free
		if r.ep != nil {
			r.ep.arrive(r.hold)
		}
		return false
	}
	r.state, r.ep = rspUsed, c.ep
	return true
}

func (r *RSP) adapter() *IA { return r.ia }

// unlisten gives qualifier and dispatcher back. mu is held.
func (r *RSP) unlisten() {
	r.ia.a.host.Unlisten(uint64(r.qual))
	r.evd.refs.drop()
}

// stop ends the service point. mu is held.
func (r *RSP) stop() {
	if r.state == rspListening {
		r.unlisten()
		if r.ep != nil {
			r.ep.release()
		}
	}
	r.state = rspFreed
}

// end ends the service point of an adapter that is closed.
func (r *RSP) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
}

// listening reports that no request came yet.
func (r *RSP) listening() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == rspListening
}
