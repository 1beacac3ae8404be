package wire

import (
	"net/netip"
	"time"
)

// A wrong remote key breaks the connection on which it arrives. guessLimiter also slows down an address that keeps
// guessing keys: it blocks the address, which means that it drops the Connects of the address for a time. This time
// doubles with each wrong key. The count of wrong keys decays with time.

// guessCount counts the wrong keys from an address or a network.
type guessCount struct {
	guesses   int  // decays by one in guessDecay
	lastDecay Time // when the count last decayed
	until     Time // Connects before this moment are dropped
}

// guessCounts has an entry for each address or network whose count has not decayed to 0.
type guessCounts map[netip.Prefix]*guessCount

// recordGuess counts a wrong key from holder, which is an address or a network. The first freeKeys wrong keys
// have no other effect. Each further wrong key blocks the holder for a time that doubles with the count, up to
// maxBlock. The Connects of a blocked holder are dropped.
//
// The argument extend matters while the holder is blocked, and for the time maxBlock after the end of a block. If extend
// is true, a wrong key at such a time begins another block. If extend is false, it does not. The Connects of the holder
// are then accepted for the time maxBlock after the end of each block.
func (p guessCounts) recordGuess(holder netip.Prefix, now Time, freeKeys int, maxBlock time.Duration, extend bool) {
	x := p[holder]
	if x == nil {
		if len(p) >= maxGuessers {
			p.prune(now)
		}
		x = &guessCount{lastDecay: now}
		p[holder] = x
	}
	x.decay(now)
	x.guesses++
	if over := x.guesses - freeKeys; over > 0 && (extend || now >= x.until.Add(maxBlock)) {
		x.until = now.Add(min(guessDelay<<min(over-1, 30), maxBlock))
	}
}

// blocked reports whether the Connects of holder are dropped now.
func (p guessCounts) blocked(holder netip.Prefix, now Time) bool {
	if len(p) == 0 {
		return false
	}
	x := p[holder]
	return x != nil && now < x.until
}

// prune makes room for entries. It deletes the entries whose count has decayed to 0. If the table is then still full,
// prune deletes arbitrary entries, an eighth of them, because it visits all entries and must not do so for each guess.
func (p guessCounts) prune(now Time) {
	for network, x := range p {
		if x.decay(now); x.guesses == 0 {
			delete(p, network)
		}
	}
	if len(p) < maxGuessers {
		return
	}
	for network := range p {
		if len(p) <= maxGuessers-maxGuessers/8 {
			return
		}
		delete(p, network)
	}
}

// decay subtracts one wrong key for each guessDecay that has passed.
func (x *guessCount) decay(now Time) {
	n := int(now.Sub(x.lastDecay) / guessDecay)
	x.guesses = max(x.guesses-n, 0)
	x.lastDecay = x.lastDecay.Add(time.Duration(n) * guessDecay)
}

// guessLimiter limits the rate of wrong remote keys per address. For IPv6 it also limits the rate per network, because
// one host may use every address of a /64. But strangers may share a network. So a network may send more wrong keys
// than an address, and a network is blocked for a shorter time. An honest address in a blocked network can still
// connect soon.
type guessLimiter struct{ addrs, networks guessCounts }

func newGuessLimiter() guessLimiter { return guessLimiter{make(guessCounts), make(guessCounts)} }

// recordGuess counts a wrong key from an address.
func (s *guessLimiter) recordGuess(a netip.Addr, now Time) {
	addr, network := holders(addressOf(a))
	s.addrs.recordGuess(addr, now, freeGuesses, maxGuessDelay, true)
	if addr.Addr().Is6() {
		s.networks.recordGuess(network, now, prefixGuesses, prefixPause, false)
	}
}

// blocked reports whether the Connects of an address are dropped now.
func (s *guessLimiter) blocked(a netip.Addr, now Time) bool {
	addr, network := holders(addressOf(a))
	return s.addrs.blocked(addr, now) || s.networks.blocked(network, now)
}
