package wire

import (
	"net/netip"
	"time"
)

// Each wrong remote key costs its peer the connection. A network that goes on guessing has to wait longer and
// longer before its next connection: its Connects are dropped meanwhile. Time forgives.

// penalty is what a network has coming to it.
type penalty struct {
	guesses int
	since   Time // when guesses was last brought up to date
	until   Time // its Connects are dropped before
}

// penalties are those of the networks whose guesses are not forgiven yet.
type penalties map[netip.Prefix]*penalty

// blame notes a wrong key of an address.
func (p penalties) blame(a netip.Addr, now Time) {
	network := suspects(a)
	x := p[network]
	if x == nil {
		if len(p) >= maxPenalties {
			p.forgive(now)
		}
		x = &penalty{since: now}
		p[network] = x
	}
	x.decay(now)
	x.guesses++
	if over := x.guesses - freeGuesses; over > 0 {
		x.until = now.Add(min(guessDelay<<min(over-1, 30), maxGuessDelay))
	}
}

// waits reports whether an address has to wait before it may connect.
func (p penalties) waits(a netip.Addr, now Time) bool {
	if len(p) == 0 {
		return false
	}
	x := p[suspects(a)]
	return x != nil && now < x.until
}

// forgive makes room: it drops the networks that have nothing coming, or one of the others.
func (p penalties) forgive(now Time) {
	for network, x := range p {
		if x.decay(now); x.guesses == 0 {
			delete(p, network)
		}
	}
	for network := range p {
		if len(p) < maxPenalties {
			return
		}
		delete(p, network)
	}
}

// decay forgives a guess for each forgiveTime that has passed.
func (x *penalty) decay(now Time) {
	n := int(now.Sub(x.since) / forgiveTime)
	x.guesses = max(x.guesses-n, 0)
	x.since = x.since.Add(time.Duration(n) * forgiveTime)
}

// suspects is the network that guesses of an address are counted for: the address itself of IPv4, where
// strangers share networks.
func suspects(a netip.Addr) netip.Prefix {
	addr, network := holders(addressOf(a))
	if addr.Addr().Is4() {
		return addr
	}
	return network
}
