package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// cookieLife is how long a cookie is good for at least; at most twice that.
const cookieLife = 15 * time.Second

// cookie proves that the requester receives what is sent to its address and port, so that nothing need be kept
// for an address that was made up. It is bound to both, to the attempt and to the time, under the host's secret.
// It is never 0.
func (e *Engine) cookie(key *requestKey, h *proto.Header, hi *proto.Hello, epoch int64) uint64 {
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

// proven checks the cookie of a Connect. Without a good one the sender is challenged, in the frame
// that it sent, and the reply is no longer than the question.
func (e *Engine) proven(key *requestKey, h *proto.Header, hi *proto.Hello) (fresh uint64, ok bool) {
	epoch := int64(e.now) / int64(cookieLife)
	fresh = e.cookie(key, h, hi, epoch)
	ok = hi.Cookie == fresh || hi.Cookie != 0 && hi.Cookie == e.cookie(key, h, hi, epoch-1)
	return fresh, ok
}

// handleChallenge asks again with the cookie.
func (c *Conn) handleChallenge(hi *proto.Hello) {
	if hi.Cookie == c.dial.cookie {
		return // a repeat
	}
	c.dial.cookie, c.dial.graceEnd = hi.Cookie, 0
	if c.dial.challenges++; c.dial.challenges <= promptChallenges {
		c.sendConnect()
	}
}
