package dat

import (
	"sync"

	"github.com/datxdp/datxdp/wire"
)

// RSP is a reserved service point (DAT_RSP_HANDLE): it listens on a connection qualifier for one request, which gets
// one endpoint. Any goroutine may call its methods.
type RSP struct {
	consumer
	ia   *IA
	qual ConnQual
	evd  *EVD

	mu    sync.Mutex // locked after the mutexes of an IA and an EP; owners of engines lock it too
	state rspState
	ep    *EP   // the reserved endpoint; nil until the request arrives if the provider creates it
	hold  *hold // the hold of this service point on ep
}

type rspState uint8

const (
	rspListening rspState = iota
	rspUsed               // the request has arrived
	rspFreed
)

// RSPParam has the parameters of a reserved service point (DAT_RSP_PARAM).
type RSPParam struct {
	IA       *IA
	ConnQual ConnQual
	EVD      *EVD
	EP       *EP // nil until the request arrives if the provider creates it
}

// CreateRSP listens on a connection qualifier of the adapter for one connection request (dat_rsp_create). The request
// becomes an EventConnectionRequest on evd. ep must be unconnected. It is EPReserved until the request arrives, and
// EPPassiveConnectionPending from then on. If ep is nil, the provider creates the endpoint when the request arrives,
// as EPTentativeConnectionPending. In both cases CR.Query returns the endpoint, and CR.Accept takes nil.
//
// After that request the service point no longer listens: further requests find no listener. The handle stays valid
// until Free, but it no longer keeps its dispatcher, its qualifier or the adapter in use.
//
// Errors: ErrInvalidHandle (ep is of another adapter or freed, or evd does not accept EVDCR), ErrInvalidState (ep is
// not unconnected), ErrInvalidParameter (evd has unsignalled or solicited streams), ErrConnQualInUse.
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
	r.mu.Lock() // arrive waits until the service point is complete
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

// Query returns the parameters of the service point (dat_rsp_query).
func (r *RSP) Query() (RSPParam, error) {
	if err := r.lock(); err != nil {
		return RSPParam{}, err
	}
	defer r.unlock()
	return RSPParam{IA: r.ia, ConnQual: r.qual, EVD: r.evd, EP: r.ep}, nil
}

// Free frees the service point (dat_rsp_free). If no request has arrived, it stops listening and its endpoint becomes
// unconnected. Otherwise the request and the endpoint stay as they are.
func (r *RSP) Free() error {
	if err := r.lock(); err != nil {
		return err
	}
	defer r.unlock()
	r.stop()
	delete(r.ia.rsps, r)
	return nil
}

// lock locks the IA and mu of a service point that is not freed. It fails, without the locks, on a freed one. The
// caller calls unlock.
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

// arrive delivers a connection request. It returns false to refuse the request. The owner of the engine calls it.
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
	if !r.evd.postAfter(request, r.unlisten) { // before a consumer can take the event
		if r.ep != nil {
			r.ep.arrive(r.hold)
		}
		return false
	}
	r.state, r.ep = rspUsed, c.ep
	return true
}

func (r *RSP) adapter() *IA { return r.ia }

// unlisten frees the qualifier and drops the reference to the dispatcher. mu is held.
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

// end ends the service point when its IA closes.
func (r *RSP) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
}

// listening reports whether no request has arrived yet.
func (r *RSP) listening() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == rspListening
}
