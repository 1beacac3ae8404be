package wire

// admission is the connection requests of an engine, and what bounds them.
type admission struct {
	requests    map[requestKey]*Request
	opening     quota       // of requests that are not decided or not established
	unconfirmed unconfirmed // those of them that are decided
	conns       quota       // of connections
	keyGuesses  guessLimiter
	declined    [maxDeclined]*Request // requests that were rejected, whose repeats are answered
	ndeclined   uint32                // counts without end
}

func newAdmission() admission {
	return admission{
		requests:    make(map[requestKey]*Request),
		opening:     newQuota(maxOpening, openingShare, openingPrefix),
		conns:       newQuota(maxConns, connsShare, connsPrefix),
		unconfirmed: make(unconfirmed),
		keyGuesses:  newGuessLimiter(),
	}
}
