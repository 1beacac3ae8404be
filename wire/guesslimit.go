package wire

import (
	"net/netip"
	"time"
)

// A wrong remote key breaks the connection that it came on. guessLimiter also slows down an address that keeps guessing
// keys: it drops the Connects of the address for a time that doubles with each wrong key. The count of wrong keys
// decays with time.

// guessCount counts the wrong keys of an address or a network.
type guessCount struct {
	guesses int  // decays by one in guessDecay
	since   Time // last decay
	until   Time // Connects before this moment are dropped
}

// guessCounts has an entry for each address or network whose count has not decayed to 0.
type guessCounts map[netip.Prefix]*guessCount

// record counts a wrong key of holder. Above free keys, it blocks the holder for a time that doubles up to most. If
// renew is true, a wrong key during a block extends the block. If renew is false, a new block begins only after a pause
// of at least most since the end of the last block.
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

// blocked reports whether the Connects of a holder are dropped now.
func (p guessCounts) blocked(holder netip.Prefix, now Time) bool {
	if len(p) == 0 {
		return false
	}
	x := p[holder]
	return x != nil && now < x.until
}

// prune makes room for an entry. It deletes the entries whose count has decayed to 0. If the map is still full, it
// deletes arbitrary entries until the map is not full.
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

// decay subtracts one guess for each guessDecay that has passed.
func (x *guessCount) decay(now Time) {
	n := int(now.Sub(x.since) / guessDecay)
	x.guesses = max(x.guesses-n, 0)
	x.since = x.since.Add(time.Duration(n) * guessDecay)
}

// guessLimiter limits the rate of wrong remote keys per address and, for IPv6, per network, because one IPv6 host may
// use every address of a /64. Strangers share a network too: it has a higher limit and short blocks, so that an honest
// address of it connects soon.
type guessLimiter struct{ addrs, networks guessCounts }

func newGuessLimiter() guessLimiter { return guessLimiter{make(guessCounts), make(guessCounts)} }

// record counts a wrong key of an address.
func (s *guessLimiter) record(a netip.Addr, now Time) {
	addr, network := holders(addressOf(a))
	s.addrs.record(addr, now, freeGuesses, maxGuessDelay, true)
	if addr.Addr().Is6() {
		s.networks.record(network, now, prefixGuesses, prefixPause, false)
	}
}

// blocked reports whether the Connects of an address are dropped now.
func (s *guessLimiter) blocked(a netip.Addr, now Time) bool {
	addr, network := holders(addressOf(a))
	return s.addrs.blocked(addr, now) || s.networks.blocked(network, now)
}
