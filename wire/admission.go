package wire

import "hash/maphash"

// admission holds the connection requests of an engine and the limits on them.
type admission struct {
	requests    map[requestKey]*Request // undecided, accepted and rejected requests
	connectSeed maphash.Seed            // seed of requestKey.connect
	halfOpen    quota                   // half-open requests by address
	unconfirmed unconfirmed             // half-open requests that the consumer has accepted
	conns       quota                   // passive connections by address
	keyGuesses  guessLimiter            // wrong remote keys by address
	rejected    [maxRejected]*Request   // ring of rejected requests; a repeated Connect gets the same Reject
	nrejected   uint32                  // requests ever put into the ring; wraps
}

func newAdmission() admission {
	return admission{
		requests:    make(map[requestKey]*Request),
		connectSeed: maphash.MakeSeed(),
		halfOpen:    newQuota(maxHalfOpen, halfOpenShare, halfOpenPrefix),
		conns:       newQuota(maxConns, connsShare, connsPrefix),
		unconfirmed: make(unconfirmed),
		keyGuesses:  newGuessLimiter(),
	}
}

// leaveHalfOpen stops counting a request as half-open.
func (e *Engine) leaveHalfOpen(r *Request) {
	if r.open {
		return
	}
	r.open = true
	if r.conn != nil {
		r.conn.permit.confirm()
	} else {
		r.permit.confirm()
	}
	e.halfOpen.freePlace(r.From.Addr())
	e.unconfirmed.remove(r)
}

// forget removes a request from the table. A later Connect then is a new request.
func (e *Engine) forget(r *Request) {
	e.leaveHalfOpen(r)
	e.unlist(r)
	r.gone = true
	releasePermit(&r.permit)
	r.sealed.forget()
}

// list puts a request into the table, under all of its keys.
func (e *Engine) list(r *Request) {
	e.requests[r.key] = r
	for _, k := range r.aliases {
		e.requests[k] = r
	}
}

// unlist removes a request from the table.
func (e *Engine) unlist(r *Request) {
	if e.requests[r.key] == r {
		delete(e.requests, r.key)
	}
	for _, k := range r.aliases {
		if e.requests[k] == r {
			delete(e.requests, k)
		}
	}
}
