package wire

// admission is the connection requests of an engine, and what bounds them.
type admission struct {
	requests    map[requestKey]*Request
	halfOpen    quota       // of requests that are not decided or not established
	unconfirmed unconfirmed // those of them that are decided
	conns       quota       // of connections
	keyGuesses  guessLimiter
	rejected    [maxRejected]*Request // requests that were rejected, whose repeats are answered
	nrejected   uint32                // counts without end
}

func newAdmission() admission {
	return admission{
		requests:    make(map[requestKey]*Request),
		halfOpen:    newQuota(maxHalfOpen, halfOpenShare, halfOpenPrefix),
		conns:       newQuota(maxConns, connsShare, connsPrefix),
		unconfirmed: make(unconfirmed),
		keyGuesses:  newGuessLimiter(),
	}
}
