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
