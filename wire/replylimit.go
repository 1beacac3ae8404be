package wire

import (
	"math/rand/v2"
	"net/netip"
)

// replyLimiter is a token bucket for stateless replies: Reset, Versions, and Closed for an unknown connection. Their
// destination addresses are not proven. Two rules decide which address gets a token:
//   - Dynamic thresholds (see quota) bound each address and each network to a share of the remaining tokens.
//   - Random early detection (Floyd and Jacobson, 1993): once less than half of the bucket is left, a token is granted
//     with falling probability. So an attacker cannot take every token by timing its packets. In a flood from many
//     addresses each packet has the same chance, and an honest peer gets its reply after a few repeats.
type replyLimiter struct {
	quota         // a place is a token; used: tokens missing from the bucket; held: tokens taken in this period
	left  float64 // tokens in the bucket
	at    Time    // last refill
	until Time    // end of this period, when held is cleared
	dice  *rand.Rand
}

func newReplyLimiter(secret [32]byte) replyLimiter {
	return replyLimiter{quota: newQuota(replyBurst, replyShare, replyPrefix), left: replyBurst, dice: rand.New(rand.NewChaCha8(secret))}
}

// allow takes a token for a reply to an address. It reports false if the address gets none.
func (a *replyLimiter) allow(to netip.Addr, now Time) bool {
	const rate = float64(replyBurst) / float64(replyPeriod)
	a.left = min(a.left+rate*float64(max(now.Sub(a.at), 0)), replyBurst)
	a.at = now
	if now >= a.until {
		clear(a.held)
		a.until = now.Add(replyPeriod)
	}
	a.used = replyBurst - int(a.left)
	if a.left < 1 || !a.hasPlace(to) || a.dice.Float64()*replyBurst/2 >= a.left {
		return false
	}
	a.addPlace(to)
	a.left--
	return true
}
