package wire

import (
	"net/netip"
	"time"
)

// Each wrong remote key costs its peer the connection. An address that goes on guessing has to wait longer and
// longer before its next connection: its Connects are dropped meanwhile. Time forgives.

// penalty is what an address or a network has coming to it.
type guessCount struct {
	guesses int
	since   Time // when guesses was last brought up to date
	until   Time // its Connects are dropped before
}

// penalties are those of the holders whose guesses are not forgiven yet.
type guessCounts map[netip.Prefix]*guessCount

// blame notes a wrong key, and has its holder wait once there were more than are free. What the wait is for is renewed
// with each further one if renew is set; else there is a pause as long between two waits.
func (p guessCounts) record(holder netip.Prefix, now Time, free int, most time.Duration, renew bool) {
	x := p[holder]
	if x == nil {
		if len(p) >= maxGuessers {
			p.prune(now)
		}
		x = &guessCount{since: now}
		p[holder] = x
	}
	x.decay(now)
	x.guesses++
	if over := x.guesses - free; over > 0 && (renew || now >= x.until.Add(most)) {
		x.until = now.Add(min(guessDelay<<min(over-1, 30), most))
	}
}

// waits reports whether a holder has to wait before it may connect.
func (p guessCounts) blocked(holder netip.Prefix, now Time) bool {
	if len(p) == 0 {
		return false
	}
	x := p[holder]
	return x != nil && now < x.until
}

// forgive makes room: it drops the holders that have nothing coming, or one of the others.
func (p guessCounts) prune(now Time) {
	for network, x := range p {
		if x.decay(now); x.guesses == 0 {
			delete(p, network)
		}
	}
	for network := range p {
		if len(p) < maxGuessers {
			return
		}
		delete(p, network)
	}
}

// decay forgives a guess for each guessDecay that has passed.
func (x *guessCount) decay(now Time) {
	n := int(now.Sub(x.since) / guessDecay)
	x.guesses = max(x.guesses-n, 0)
	x.since = x.since.Add(time.Duration(n) * guessDecay)
}

// suspicion is who has penalties: addresses, and networks of IPv6, one host of which may have every address. Strangers
// share networks too, so that a network has many more guesses, and a newcomer of it never waits for long.
type guessLimiter struct{ addrs, networks guessCounts }

func newGuessLimiter() guessLimiter { return guessLimiter{make(guessCounts), make(guessCounts)} }

// blame notes a wrong key of an address.
func (s *guessLimiter) record(a netip.Addr, now Time) {
	addr, network := holders(addressOf(a))
	s.addrs.record(addr, now, freeGuesses, maxGuessDelay, true)
	if addr.Addr().Is6() {
		s.networks.record(network, now, prefixGuesses, prefixPause, false)
	}
}

// wait reports whether an address has to wait before it may connect.
func (s *guessLimiter) blocked(a netip.Addr, now Time) bool {
	addr, network := holders(addressOf(a))
	return s.addrs.blocked(addr, now) || s.networks.blocked(network, now)
}
