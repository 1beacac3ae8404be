package wire

import (
	"math/rand/v2"
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// replyLimiter is a token bucket for stateless replies: Challenge, Reject for a Connect without a request, Reset,
// Versions, and Closed for an unknown connection. Their destination addresses are not proven, except that of some
// Rejects. A Connect takes its token before its cookie is checked, because the check costs more than the reply. Two rules decide which address gets a token:
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

	refused   netip.Addr // address that got no token
	refusedAt Time       // when
}

func newReplyLimiter(secret [32]byte) replyLimiter {
	return replyLimiter{quota: newQuota(replyBurst, replyShare, replyPrefix), left: replyBurst, dice: rand.New(rand.NewChaCha8(secret))}
}

// allow takes a token for a reply to an address. It reports false if the address gets none. In one Poll, in which the time
// stands still, an engine thus sends at most replyBurst replies.
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
		a.refuse(to, now)
		return false
	}
	a.addPlace(to)
	a.left--
	return true
}

// giveBack returns the token of an address whose Connect needs no stateless reply.
func (a *replyLimiter) giveBack(to netip.Addr) {
	a.left = min(a.left+1, replyBurst)
	if addr, _ := holders(to); a.held[addr] > 0 { // otherwise a new period has begun
		a.freePlace(to)
	}
}

// refuse notes that an address has sent a packet that gets no reply.
func (a *replyLimiter) refuse(from netip.Addr, now Time) { a.refused, a.refusedAt = from, now }

// mayReply reports whether the engine may answer a packet in the packet's own frame without a connection.
func (e *Engine) mayReply(bufs []link.Buf) bool {
	if e.forwarded || len(bufs) != 1 {
		return false
	}
	from := e.source(&bufs[0])
	if !e.mayReplyTo(from) {
		e.replyLimit.refuse(from, e.now)
		return false
	}
	return e.replyLimit.allow(from, e.now)
}

// mayAnswerConnect is mayReply for a Connect. It counts a Connect that gets no answer.
func (e *Engine) mayAnswerConnect(bufs []link.Buf) bool {
	ok := e.mayReply(bufs)
	if !ok {
		e.stats.ConnRequestsDropped++
	}
	return ok
}

// ignores reports whether a packet is dropped before its checksum is computed: it belongs to no connection, and an earlier
// packet from its address got no reply in this Poll. In a flood from one address, most packets thus cost little more than
// their reception. A kernel can deliver ten million packets a second from a program of its host, in groups.
func (e *Engine) ignores(b *link.Buf) bool {
	if e.replyLimit.refusedAt != e.now || e.source(b) != e.replyLimit.refused {
		return false
	}
	t, cid, ok := proto.Peek(b.Data)
	switch slot, _, engine := e.table.findSlot(cid); {
	case !ok:
		e.stats.BadPackets++
	case t == proto.Connect:
		e.stats.ConnRequestsDropped++
		e.shed.note(e.replyLimit.refused, e.now)
	case t == proto.Reset || slot != nil || engine != int(e.table.engine): // a Reset has the ID of the peer
		return false
	default:
		e.stats.UnknownConnection++
	}
	return true
}
