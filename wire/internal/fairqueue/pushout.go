package fairqueue

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// The progress timeout bounds how long a message may stand still, but not how long it may take: a message of 40 MiB at
// MinRate makes progress for 40 s. So if the messages of all buffers are long and slow, one of them has to end for a peer
// that waits (push-out: Choudhury and Hahne 1998, section II).
//
// A peer has a claim to a buffer if it waits, holds none, and is not slow. If no flow is served for PushOutWait while
// such a peer waits, one message is pushed out: the oldest one of a peer and network that hold at least the average.
// So peers and networks that hold few buffers keep theirs, and with n buffers each message has n × PushOutWait. No
// message is pushed out before the progress timeout, because its path may have an outage.

// hold counts a buffer that p holds.
func (q *Queue[W]) hold(p *peer[W]) {
	n := p.net
	if n.held == 0 {
		q.holders++
	}
	if p.held == 0 {
		n.holders++
	}
	q.held++
	n.held++
	p.held++
}

// unhold stops counting a buffer that p holds.
func (q *Queue[W]) unhold(p *peer[W]) {
	n := p.net
	q.held--
	n.held--
	p.held--
	if n.held == 0 {
		q.holders--
	}
	if p.held == 0 {
		n.holders--
	}
}

// pushOut returns 0 if the message of f has to end for a peer that waits. Otherwise it returns the time after which the
// caller has to ask again.
func (q *Queue[W]) pushOut(f *Flow[W], now clock.Time) time.Duration {
	if left := q.timeout - now.Sub(f.since); left > 0 {
		return left
	}
	p := q.claimant()
	if p == nil {
		return PushOutWait
	}
	// If the network of p has reached its threshold, only a buffer of this network helps p.
	full := p.net.held >= NetworkShare*max(q.free, 1)
	turned := q.turned
	if full {
		turned = p.net.turned
	}
	if left := max(turned, p.waits).Add(PushOutWait).Sub(now); left > 0 {
		return left
	}
	if q.longest(p.net, full) != f {
		return PushOutWait
	}
	q.turned, p.net.turned = now, now // the buffer takes a while to come back
	f.pushedOut = true
	return 0
}

// claimant returns the first peer with a claim to a buffer, by class and turn, or nil. Like nextOf, it skips only peers
// that hold buffers.
func (q *Queue[W]) claimant() *peer[W] {
	for c := proven; c < slowPeer; c++ {
		for n := q.active[c].First(); n != nil; {
			net := n.Elem()
			n = n.Next() // demote may move the network
			for m := net.active[c].First(); m != nil; {
				p := m.Elem()
				m = m.Next()
				if p.held == 0 && !q.demote(p) {
					return p
				}
			}
		}
	}
	return nil
}

// longest returns the oldest message of a peer that holds at least the average of its network. The network is net if
// full is true, and otherwise any network that holds at least the average.
func (q *Queue[W]) longest(net *network[W], full bool) *Flow[W] {
	for m := q.messages.First(); m != nil; m = m.Next() {
		f := m.Elem()
		p, n := f.peer, f.peer.net
		if full && n != net || !full && uint64(n.held)*uint64(q.holders) < uint64(q.held) {
			continue
		}
		if uint64(p.held)*uint64(n.holders) >= uint64(n.held) {
			return f
		}
	}
	return nil
}
