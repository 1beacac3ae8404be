package dat

import (
	"sync"

	"github.com/datxdp/datxdp/wire"
)

// RSP is a reserved service point (DAT_RSP_HANDLE). It listens on a connection qualifier for one connection request,
// and reserves an endpoint for that request. Any goroutine may call the methods.
type RSP struct {
	consumer
	ia   *IA
	qual ConnQual
	evd  *EVD

	mu       sync.Mutex // locked after the mutexes of an IA and an EP; owners of engines lock it too
	state    rspState
	ep       *EP       // the endpoint; if the provider creates it, nil until the request arrives
	epHolder *epHolder // value of EP.holder while this service point holds an endpoint of the consumer
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
	EP       *EP // if the provider creates the endpoint, nil until the request arrives
}

// CreateRSP listens on a connection qualifier of the adapter for one connection request (dat_rsp_create). The request
// becomes an EventConnectionRequest on evd. There are two kinds of endpoints for the request:
//
//   - If ep is not nil, the endpoint ep must be unconnected. Its state is EPReserved until the request arrives, and
//     then EPPassiveConnectionPending.
//   - If ep is nil, the provider creates an endpoint when the request arrives, in state EPTentativeConnectionPending.
//
// In both cases CR.Query returns the endpoint, and the consumer passes nil to CR.Accept.
//
// When the request has arrived, the service point stops listening: further requests find no listener. The handle stays
// valid until Free, but no longer keeps the dispatcher, the qualifier or the adapter in use.
//
// Errors: ErrInvalidHandle (ep is freed or belongs to another adapter, or evd was not created with EVDCR),
// ErrInvalidState (ep is not unconnected), ErrInvalidParameter (endpoints with CompletionUnsignalled or
// CompletionSolicitedWait use evd), ErrConnQualInUse.
func (ia *IA) CreateRSP(qual ConnQual, ep *EP, evd *EVD) (*RSP, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if evd == nil || evd.checkFeed(ia, EVDCR) != nil {
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
	r.mu.Lock() // so that deliver waits until the service point is complete
	defer r.mu.Unlock()
	if err := evd.addRequestFeed(); err != nil {
		return nil, err
	}
	if err := ia.a.listen(qual, r); err != nil {
		evd.refs.drop()
		return nil, err
	}
	if ep != nil {
		r.epHolder = ep.holdForRSP()
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

// Free frees the service point (dat_rsp_free). If no request has arrived, the service point stops listening and its
// endpoint becomes unconnected. If the request has arrived, the request and the endpoint stay as they are.
func (r *RSP) Free() error {
	if err := r.lock(); err != nil {
		return err
	}
	defer r.unlock()
	r.stopListening()
	delete(r.ia.rsps, r)
	return nil
}

// lock locks the IA and mu. It returns an error and locks nothing if the service point is nil or freed, or if the IA is
// closed. Otherwise the caller must call unlock.
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

// deliver queues a connection request on evd. If it returns false, the engine refuses the request. The owner of the
// engine calls deliver.
func (r *RSP) deliver(req *wire.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != rspListening {
		return false
	}
	c := newCR(r.ia, req)
	if r.ep != nil {
		c.ep = r.ep
		r.ep.setHolder(&epHolder{EPPassiveConnectionPending, c})
	}
	request := Event{Number: EventConnectionRequest, CR: c, RSP: r, ConnQual: r.qual}
	if !r.evd.enqueueWith(request, func() { // before a consumer can take the event
		if c.ep == nil {
			c.makeEP()
		}
		r.state, r.ep = rspUsed, c.ep
		r.unlisten()
	}) {
		if r.ep != nil {
			r.ep.setHolder(r.epHolder)
		}
		return false
	}
	return true
}

func (r *RSP) adapter() *IA { return r.ia }

// unlisten frees the qualifier and drops the reference to the dispatcher. mu is held.
func (r *RSP) unlisten() {
	r.ia.a.unlisten(r.qual)
	r.evd.refs.drop()
}

// stopListening ends the service point. mu is held.
func (r *RSP) stopListening() {
	if r.state == rspListening {
		r.unlisten()
		if r.ep != nil {
			r.ep.clearHolder()
		}
	}
	r.state = rspFreed
}

// closeWithIA ends the service point when its IA closes.
func (r *RSP) closeWithIA() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopListening()
}

// listening reports whether no request has arrived yet.
func (r *RSP) listening() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == rspListening
}
