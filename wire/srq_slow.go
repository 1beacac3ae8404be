package wire

import (
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// A message holds a receive of a shared queue from its first packet to its last. A sender that lets it stand still keeps
// the receive from others. While others wait, patience with a message runs down, and the bytes that arrive of it restore
// it: a message has to move at a least rate, and may stand still for a bounded time. The connection whose message has
// used its patience up ends. A peer that has used up some of it is slow for a while: others go before it in the line,
// also before the peers of its network, so that who holds receives again and again waits longest. Of the peers of its
// network those that have sent whole messages, and were not slow while they were connected, go before the others: a host
// with ever new addresses does not keep them waiting for longer than one turn.

// patience is what is left for an unfinished message.
type patience struct {
	left   time.Duration
	queue  time.Duration // readings of the stopwatches of the queue and the peer, and bytes received, at the last review
	peer   time.Duration
	bytes  uint64
	lowest time.Duration // least that was left
}

// review takes the time in which others have waited off, and adds that of the bytes that have arrived.
func (p *patience) review(queue, peer time.Duration, bytes uint64, most time.Duration) {
	waited := max(queue-p.queue, peer-p.peer)
	earned := time.Duration(min(bytes-p.bytes, 1<<30)) * (time.Second / messageRate)
	p.left = min(p.left-waited+earned, most)
	p.lowest = min(p.lowest, p.left)
	p.queue, p.peer, p.bytes = queue, peer, bytes
}

// stopwatch counts time.
type stopwatch struct {
	sum time.Duration
	at  Time // until when
}

// count adds the time until now if the watch was running. Engines are not at the same time exactly.
func (s *stopwatch) count(now Time, running bool) {
	d := now.Sub(s.at)
	if d <= 0 {
		return
	}
	if running {
		s.sum += d
	}
	s.at = now
}

// countWaits brings the time in which connections wait, and there are no receives, up to date. It is called before the
// line changes. The caller holds the mutex.
func (q *SharedQueue) countWaits(now Time) { q.waits.count(now, q.waiting > 0 && q.available() == 0) }

// countWaits counts the time in which connections of the peer wait: behind one address there may be many hosts.
func (a *account) countWaits(now Time) { a.waits.count(now, a.waiting > 0) }

// mostPatience is the time that a message may stand still.
func (q *SharedQueue) mostPatience() time.Duration {
	return min(sharedPatience, q.host.limits.NotReady/2)
}

// review brings the patience with the message of c up to date. The caller holds the mutex.
func (q *SharedQueue) review(c *Conn) {
	s, now := c.share, c.eng.now
	q.countWaits(now)
	s.account.countWaits(now)
	s.patience.review(q.waits.sum, s.account.waits.sum, s.bytes+uint64(c.recv.off), q.mostPatience())
}

// countMessage counts a message of c that goes on in another packet. The caller holds the mutex.
func (q *SharedQueue) countMessage(c *Conn) {
	s, most := c.share, q.mostPatience()
	s.counted, s.begun = true, s.taken
	s.account.held++
	s.patience = patience{left: most, lowest: most, bytes: s.bytes + uint64(c.recv.off)}
	q.countWaits(c.eng.now)
	s.account.countWaits(c.eng.now)
	s.patience.queue, s.patience.peer = q.waits.sum, s.account.waits.sum
}

// uncount forgets the message of c, which is complete or will not be. The caller holds the mutex.
func (q *SharedQueue) uncount(c *Conn) {
	s := c.share
	q.review(c)
	s.counted = false
	s.account.held--
	if q.mostPatience()-s.patience.lowest >= slowMessage {
		s.account.slowed = true
		q.slow.note(s.account.addr, c.eng.now)
	}
}

// settle counts the message of c that goes on in another packet, and forgets the one before. It is called after
// each packet.
func (s *share) settle(c *Conn) {
	held := s.held.Load()
	if held == s.counted && (!held || s.taken == s.begun) || s.account == nil {
		return
	}
	q := s.q
	q.ring.mu.Lock()
	if s.counted {
		q.uncount(c)
	}
	if held {
		q.countMessage(c)
	}
	next, at := q.whoIsNext()
	q.ring.mu.Unlock()
	if held {
		c.setDeadline(c.eng.now.Add(q.mostPatience()))
	}
	c.eng.tell(next, at)
}

// tickShare ends a connection whose message has used its patience up. It returns when to look again.
func (c *Conn) tickShare() Time {
	s := c.share
	if s == nil || !s.counted {
		return never
	}
	q := s.q
	q.ring.mu.Lock()
	q.review(c)
	left := s.patience.left
	q.ring.mu.Unlock()
	if left > 0 {
		return c.eng.now.Add(left)
	}
	c.fault(proto.ReasonUnfinished, proto.OpSend, 0)
	return never
}

// rank is where a peer stands in the line.
type rank uint8

const (
	prompt      rank = iota
	knownPeer        // another peer of its network was slow; this one has sent whole messages and never was
	slowNetwork      // another peer of its network was slow
	slowPeer
	ranks
)

// slowPeers are addresses and networks, and until when they are slow.
type slowPeers map[netip.Prefix]Time

// note makes a peer and its network slow for a while.
func (p slowPeers) note(addr netip.Addr, now Time) {
	own, network := holders(addr)
	for _, k := range [...]netip.Prefix{own, network} {
		if _, ok := p[k]; !ok && len(p) >= maxSlow {
			p.forget(now)
		}
		p[k] = now.Add(slowTime)
	}
}

// forget makes room: it drops those that are slow no more, or one of the others.
func (p slowPeers) forget(now Time) {
	for k, until := range p {
		if now >= until {
			delete(p, k)
		}
	}
	for k := range p {
		if len(p) < maxSlow {
			return
		}
		delete(p, k)
	}
}

// rank is that of an address.
func (p slowPeers) rank(addr netip.Addr, now Time) rank {
	if len(p) == 0 {
		return prompt
	}
	own, network := holders(addr)
	switch {
	case now < p[own]:
		return slowPeer
	case now < p[network]:
		return slowNetwork
	default:
		return prompt
	}
}

// rank is that of a peer.
func (q *SharedQueue) rank(a *account, now Time) rank {
	r := q.slow.rank(a.addr, now)
	if r == slowNetwork && a.known && !a.slowed {
		return knownPeer
	}
	return r
}

// file moves a peer that waits to the end of the line of its rank, if that is another. The caller holds the mutex.
func (q *SharedQueue) file(a *account) (moved bool) {
	now := q.rank(a, q.waits.at)
	if now == a.rank {
		return false
	}
	q.lines[a.rank].remove(a)
	a.rank = now
	q.lines[now].push(a)
	return true
}

// demote moves a peer that waits to a later line if it or its network was slow since it joined. The caller holds the
// mutex.
func (q *SharedQueue) demote(a *account) bool {
	return q.rank(a, q.waits.at) > a.rank && q.file(a)
}
