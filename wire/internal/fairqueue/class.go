package fairqueue

import (
	"net/netip"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// class is the priority of a waiting peer. A peer is served only if no peer of an earlier class may take the buffer.
//
// A peer has proven itself if three conditions hold: it has had flows for ProvenTime, it has sent a whole message, and
// none of its messages was slow (see SlowMessage). A crowd of attackers does not delay such a peer, however many
// networks the attackers have. If a peer of a network counts as slow, each peer of this network that has not sent a
// whole message yet has class slowNetwork. Otherwise an attacker could evade class slowPeer by using ever new addresses
// of the network.
type class uint8

// Classes.
const (
	proven      class = iota
	unproven          // has sent whole messages and was not slow, or no peer of its network counts as slow
	slowNetwork       // another peer of the network was slow
	slowPeer          // a message of this peer was slow
	classes
)

// slowTable holds each address and network that counts as slow, and the time until which it counts as slow.
type slowTable map[netip.Prefix]clock.Time

// add makes an address or a network count as slow for SlowTime.
func (t slowTable) add(k netip.Prefix, now clock.Time) {
	if _, ok := t[k]; !ok && len(t) >= MaxSlow {
		t.shrink(now)
	}
	t[k] = now.Add(SlowTime)
}

// shrink makes room for an entry. It deletes the entries whose time is over, or else an arbitrary entry.
func (t slowTable) shrink(now clock.Time) {
	for k, until := range t {
		if now >= until {
			delete(t, k)
		}
	}
	for k := range t {
		if len(t) < MaxSlow {
			return
		}
		delete(t, k)
	}
}

// class returns the class that a peer has now.
func (q *Queue[W]) class(p *peer[W], now clock.Time) class {
	switch t := q.slow; {
	case p.known && !p.slowed && now.Sub(p.since) >= ProvenTime:
		return proven
	case len(t) == 0:
		return unproven
	case now < t[p.addr]:
		return slowPeer
	case now >= t[p.net.prefix], p.known && !p.slowed:
		return unproven
	default:
		return slowNetwork
	}
}

// reclassify moves a waiting peer to the end of its current class, if the class has changed.
func (q *Queue[W]) reclassify(p *peer[W]) (moved bool) {
	now := q.starved.at
	if q.class(p, now) == p.class {
		return false
	}
	q.deactivate(p)
	q.activate(p, now)
	return true
}

// demote moves a waiting peer to a later class, if the peer or its network has become slow since it began to wait.
func (q *Queue[W]) demote(p *peer[W]) bool {
	return q.class(p, q.starved.at) > p.class && q.reclassify(p)
}
