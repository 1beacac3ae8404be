package fairqueue

import (
	"net/netip"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// class is the priority of a peer: each class waits behind those before it. A host that holds buffers again and again has
// slow messages and waits longest. Of the peers of its network those that have sent whole messages, and were not slow
// while they were connected, come first: a host with ever new addresses does not keep them waiting for longer than one turn.
type class uint8

// Classes.
const (
	normal      class = iota
	knownPeer         // another peer of its network was slow; this one has sent whole messages and never was
	slowNetwork       // another peer of its network was slow
	slowPeer
	classes
)

// slowTable is addresses and networks, and until when they are slow.
type slowTable map[netip.Prefix]clock.Time

// add makes an address or a network slow for a while.
func (t slowTable) add(k netip.Prefix, now clock.Time) {
	if _, ok := t[k]; !ok && len(t) >= MaxSlow {
		t.shrink(now)
	}
	t[k] = now.Add(SlowTime)
}

// shrink makes room: it removes those that are slow no more, or one of the others.
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

// class is the priority of a peer now.
func (q *Queue[W]) class(p *peer[W], now clock.Time) class {
	switch t := q.slow; {
	case len(t) == 0:
		return normal
	case now < t[p.addr]:
		return slowPeer
	case now >= t[p.net.prefix]:
		return normal
	case p.known && !p.slowed:
		return knownPeer
	default:
		return slowNetwork
	}
}

// reclassify moves a peer that waits to the end of its class if that is another than it was.
func (q *Queue[W]) reclassify(p *peer[W]) (moved bool) {
	now := q.starved.at
	if q.class(p, now) == p.class {
		return false
	}
	q.deactivate(p)
	q.activate(p, now)
	return true
}

// demote moves a peer that waits to a later class if it or its network was slow since it began to wait.
func (q *Queue[W]) demote(p *peer[W]) bool {
	return q.class(p, q.starved.at) > p.class && q.reclassify(p)
}
