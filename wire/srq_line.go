package wire

import (
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// account is what one peer, which is a source address, has of a shared queue: receives that its unfinished
// messages hold, and connections that wait for one.
//
// A peer may hold as many receives as it leaves to others: the dynamic threshold of Choudhury and Hahne with
// α = 1. A single peer can so hold half of a queue, two of them a third each. Messages of one packet hold
// nothing.
type account struct {
	addr    netip.Addr
	conns   int    // that refer to it
	held    uint32 // receives of unfinished messages
	waiting uint32 // connections in its line

	first, last *Conn    // its line
	prev, next  *account // in the queue's line
}

// accountOf is the address whose account a connection has: all of an IPv6 /64 belongs to one host or site.
func accountOf(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

// enter gives c the account of its peer. The caller holds the mutex.
func (q *SharedQueue) enter(c *Conn) {
	addr := accountOf(c.peerAddr)
	a := q.accounts[addr]
	if a == nil {
		a = &account{addr: addr}
		q.accounts[addr] = a
	}
	a.conns++
	c.share.account = a
}

// exit takes away the account of c, which is over. The caller holds the mutex.
func (q *SharedQueue) exit(c *Conn) {
	s := c.share
	a := s.account
	if a == nil {
		return
	}
	q.quit(c)
	if s.account = nil; s.counted {
		s.counted = false
		a.held--
	}
	if a.conns--; a.conns == 0 {
		delete(q.accounts, a.addr)
	}
}

// mayTake reports whether a connection may take one of n receives: its peer holds fewer than n, and those that
// wait are not overtaken. The caller holds the mutex.
func (q *SharedQueue) mayTake(s *share, n uint32) bool {
	return s.account.held < n && (s.waits || n > q.claims(n))
}

// claims is how many of n receives, all of them at most, the line may take. The caller holds the mutex.
func (q *SharedQueue) claims(n uint32) (sum uint32) {
	for a := q.first; a != nil && sum < n; a = a.next {
		if a.held < n {
			sum += min(a.waiting, n-a.held)
		}
	}
	return sum
}

// whoIsNext is the connection that is to be told of receives, with its engine: the first one of the first peer
// in the line that may take one. The caller holds the mutex.
func (q *SharedQueue) whoIsNext() (*Conn, *Engine) {
	n := q.available()
	for a := q.first; a != nil; a = a.next {
		if a.held < n {
			return a.first, a.first.share.eng
		}
	}
	return nil, nil
}

// join adds c to the end of its peer's line, and its peer to the end of the queue's if it is not there: peers
// take turns. The caller holds the mutex.
func (q *SharedQueue) join(c *Conn) {
	s := c.share
	if s.waits {
		return
	}
	a := s.account
	s.waits, s.eng, s.prev = true, c.eng, a.last
	if a.last == nil {
		a.first = c
	} else {
		a.last.share.next = c
	}
	a.last = c
	if a.waiting++; a.waiting == 1 {
		q.countStarving(c.eng.now)
		q.push(a)
	}
	q.waiting++
}

// quit takes c out of the line, if it is there. Its peer goes to the end. The caller holds the mutex.
func (q *SharedQueue) quit(c *Conn) {
	s := c.share
	if !s.waits {
		return
	}
	a := s.account
	if s.prev == nil {
		a.first = s.next
	} else {
		s.prev.share.next = s.next
	}
	if s.next == nil {
		a.last = s.prev
	} else {
		s.next.share.prev = s.prev
	}
	s.waits, s.eng, s.prev, s.next = false, nil, nil, nil
	q.waiting--
	a.waiting--
	q.countStarving(c.eng.now)
	q.remove(a)
	if a.waiting > 0 {
		q.push(a)
	}
}

func (q *SharedQueue) push(a *account) {
	if a.prev = q.last; a.prev == nil {
		q.first = a
	} else {
		a.prev.next = a
	}
	q.last = a
}

func (q *SharedQueue) remove(a *account) {
	if a.prev == nil {
		q.first = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next == nil {
		q.last = a.prev
	} else {
		a.next.prev = a.prev
	}
	a.prev, a.next = nil, nil
}

// countStarving brings the time during which connections wait up to date. It is called before the line changes.
// Engines are not at the same time exactly. The caller holds the mutex.
func (q *SharedQueue) countStarving(now Time) {
	if d := now.Sub(q.since); d > 0 {
		if q.first != nil {
			q.starving += d
		}
		q.since = now
	}
}

// starved is how long connections have waited, those of the same peer too: behind one address there may be many
// hosts. The caller holds the mutex.
func (q *SharedQueue) starved(now Time) time.Duration {
	q.countStarving(now)
	return q.starving
}

// settle counts the message of c that goes on in another packet, and forgets the one before. It is called after
// each packet.
func (s *share) settle(c *Conn) {
	held := s.held.Load()
	if held == s.counted && (!held || s.taken == s.begun) || s.account == nil {
		return
	}
	q, a, now := s.q, s.account, c.eng.now
	q.ring.mu.Lock()
	if s.counted {
		a.held--
	}
	if s.counted = held; held {
		a.held++
		s.begun, s.starvedBefore = s.taken, q.starved(now)
	}
	next, at := q.whoIsNext()
	q.ring.mu.Unlock()
	if held {
		c.setDeadline(now.Add(c.messageTime()))
	}
	c.eng.tell(next, at)
}

// messageTime is how long an unfinished message may hold a receive while connections wait for one, as far as it
// has come: less than they wait, and more than a host is stopped for or packets are lost.
func (c *Conn) messageTime() time.Duration {
	return c.host.limits.NotReady/2 + time.Duration(c.recv.off)*(time.Second/messageRate)
}

// tickShare ends a connection whose message has held a receive for too long. It returns when to look again.
func (c *Conn) tickShare() Time {
	s := c.share
	if s == nil || !s.counted {
		return never
	}
	q, now := s.q, c.eng.now
	q.ring.mu.Lock()
	starved := q.starved(now) - s.starvedBefore
	q.ring.mu.Unlock()
	left := c.messageTime() - starved
	if left > 0 {
		return now.Add(left)
	}
	c.fault(proto.ReasonUnfinished, proto.OpSend, 0)
	return never
}
