package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// cookieLife is the length of a cookie period. A cookie is valid in the period in which it was made and in the period
// after that, hence for 15 to 30 s.
const cookieLife = 15 * time.Second

// makeCookie computes a value like a SYN cookie: a Connect with this value proves that the requester receives at
// its address and port. The engine keeps no state for a requester without that proof, so spoofed addresses cost no
// memory. The cookie is a hash of the host's secret, the address, the port, the connection attempt and the period, and
// is never 0.
func (e *Engine) makeCookie(key *requestKey, h *proto.Header, hi *proto.Hello, epoch int64) uint64 {
	var b [80]byte
	copy(b[:32], e.host.secret[:])
	addr := key.from.Addr().As16()
	copy(b[32:48], addr[:])
	binary.BigEndian.PutUint16(b[48:], key.from.Port())
	binary.BigEndian.PutUint16(b[50:], e.portOf(h, hi, key.from))
	binary.BigEndian.PutUint32(b[52:], hi.CID)
	binary.BigEndian.PutUint32(b[56:], hi.Tag)
	binary.BigEndian.PutUint32(b[60:], uint32(h.PSN))
	binary.BigEndian.PutUint64(b[64:], hi.Qual)
	binary.BigEndian.PutUint64(b[72:], uint64(epoch))
	sum := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// otherCookie is added to a period to make another cookie for the same attempt, in secure mode.
const otherCookie = 1 << 62

// checkCookie reports whether a Connect carries a valid cookie, of this period or the previous one. It also
// returns the cookie of this period (fresh), which the caller may send in a Challenge. In secure mode there are two
// cookies in each period. If the cookie is valid, other is the one of this period that the Connect does not carry, and
// the token for a stateless reply that the Connect has taken is given back.
func (e *Engine) checkCookie(key *requestKey, h *proto.Header, hi *proto.Hello) (fresh, other uint64, ok bool) {
	if fresh, other, ok = e.compareCookie(key, h, hi); ok {
		e.replyLimit.giveBack(addressOf(key.from.Addr()))
	}
	return fresh, other, ok
}

// compareCookie is checkCookie without the token.
func (e *Engine) compareCookie(key *requestKey, h *proto.Header, hi *proto.Hello) (fresh, other uint64, ok bool) {
	epoch := e.cookiePeriod()
	if e.secure { // a Connect that is sent again to another engine must not have a valid cookie there
		epoch |= int64(e.index) << 48
	}
	valid := func(now uint64, epoch int64) bool {
		return hi.Cookie == now || hi.Cookie != 0 && hi.Cookie == e.makeCookie(key, h, hi, epoch-1)
	}
	fresh = e.makeCookie(key, h, hi, epoch)
	switch {
	case !e.secure:
		return fresh, 0, valid(fresh, epoch)
	case valid(fresh, epoch):
		return fresh, e.makeCookie(key, h, hi, epoch|otherCookie), true
	}
	return fresh, fresh, hi.Cookie != 0 && valid(e.makeCookie(key, h, hi, epoch|otherCookie), epoch|otherCookie)
}

// cookiePeriod returns the number of the current cookie period.
func (e *Engine) cookiePeriod() int64 { return int64(e.now) / int64(cookieLife) }

// handleChallenge sends Connect again with the cookie from the peer's Challenge.
func (c *Conn) handleChallenge(hi *proto.Hello) {
	if hi.Cookie == c.dial.cookie {
		return // a repeated Challenge
	}
	if c.dial.cookie = hi.Cookie; c.dial.opening == nil {
		c.dial.graceEnd, c.dial.unreachable = 0, 0
	}
	if c.dial.challenges++; c.dial.challenges <= promptChallenges {
		c.sendConnect()
	}
}
