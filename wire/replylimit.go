package wire

import (
	"math/rand/v2"
	"net/netip"
)

// answers bounds what an engine sends without a connection and without a proof of the address: Reset, Closed and
// Versions. It is a token bucket with two rules for who gets a token. An address, and a network, takes at most its share
// of those that are left, by dynamic thresholds. When less than half is left a token is given with falling probability
// (random early detection, Floyd and Jacobson, 1993), so that nobody knows when to come first: of a flood from everywhere
// each packet has the same chance, and a peer that asks again soon has its answer.
type replyLimiter struct {
	quota // places are tokens; used are those that the bucket lacks; held counts within a period
	left  float64
	at    Time // when left was brought up to date
	until Time // end of the period
	dice  *rand.Rand
}

func newReplyLimiter(secret [32]byte) replyLimiter {
	return replyLimiter{quota: newQuota(replyBurst, replyShare, replyPrefix), left: replyBurst, dice: rand.New(rand.NewChaCha8(secret))}
}

// may takes a token for an answer to an address, and reports whether there was one.
func (a *replyLimiter) allow(to netip.Addr, now Time) bool {
	const rate = float64(replyBurst) / float64(replyPeriod)
	a.left = min(a.left+rate*float64(max(now.Sub(a.at), 0)), replyBurst)
	a.at = now
	if now >= a.until {
		clear(a.held)
		a.until = now.Add(replyPeriod)
	}
	a.used = replyBurst - int(a.left)
	if a.left < 1 || !a.room(to) || a.dice.Float64()*replyBurst/2 >= a.left {
		return false
	}
	a.take(to)
	a.left--
	return true
}
