package wire

import (
	"cmp"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// A requester that does not know the server's key has a KeyLearner. It asks for the key in a Connect without a message 1,
// and learns it from the Challenge. Nobody has authenticated the key, so the requester may learn several, one after the
// other, and asks until the server has answered a message 1.

// sendQuestion sends a Connect without a cookie and without a message 1. It asks for the server's key if that is unknown.
func (c *Conn) sendQuestion() {
	h, hi := c.secureConnect()
	hi.Cookie = 0
	if c.dial.opening.learner != nil {
		hi.ServerKey = make([]byte, proto.PublicKeySize)
	}
	c.sendHello(&h, &hi)
}

// handleSecureChallenge answers a Challenge, if it is chosen. While only Challenges name the server's key, one without a
// key is not answered.
func (c *Conn) handleSecureChallenge(hi *proto.Hello) {
	o := c.dial.opening
	switch {
	case o.learner != nil && hi.ServerKey == nil:
		o.hint = cmp.Or(o.hint, BreakHandshake)
	case o.choose(c.host):
		if o.learn(hi) {
			c.dial.cookie = 0 // the same cookie with another key is another Challenge
		}
		c.handleChallenge(hi)
	}
}

// learn takes the server's key from a Challenge, if only Challenges name it. It reports whether it was another key before.
func (o *opening) learn(hi *proto.Hello) (other bool) {
	if o.learner == nil {
		return false
	}
	key := [proto.PublicKeySize]byte(hi.ServerKey)
	if other = o.requester == nil || key != o.server; other {
		o.requester, o.server = o.learner.Learn(key), key
	}
	return other
}

// refuseKey asks the server again for its key, if no message 1 can be made for the one that was learned.
func (c *Conn) refuseKey(x *offer) {
	if o := c.dial.opening; o != nil && o.learner != nil && o.server == x.server {
		o.hint, c.dial.cookie = BreakHandshake, 0
	}
}
