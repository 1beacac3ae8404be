package wire

import "net/netip"

// account is what one peer, which is a source address, has of a shared queue: receives that its unfinished
// messages hold, and connections that wait for one.
//
// A peer may hold as many receives as it leaves to others: the dynamic threshold of Choudhury and Hahne with
// α = 1. A single peer can so hold half of a queue, two of them a third each. Messages of one packet hold
// nothing.
//
// The account belongs to the address and not to its network: all neighbours of a LAN are in one IPv6 /64, and what one of
// them holds may not count against the others. A host with very many addresses has as many accounts; patience bounds how
// long each holds a receive, and the lines for peers of a slow network keep others, and known neighbours, from waiting
// behind them.
type account struct {
	addr    netip.Addr
	conns   int    // that refer to it
	held    uint32 // receives of unfinished messages
	waiting uint32 // connections in its line

	first, last *Conn     // its line
	waits       stopwatch // time in which there was one
	known       bool      // a message of it is complete
	slowed      bool      // a message of it has used up patience
	rank        rank
	prev, next  *account // in a line of the queue
}

// enter gives c the account of its peer. The caller holds the mutex.
func (q *SharedQueue) enter(c *Conn) {
	a := q.accounts[c.peerAddr]
	if a == nil {
		a = &account{addr: c.peerAddr}
		q.accounts[c.peerAddr] = a
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
	if s.counted {
		q.uncount(c)
	}
	s.account = nil
	if a.conns--; a.conns == 0 {
		delete(q.accounts, a.addr)
	}
}

// whoIsNext is the connection that is to be told of receives, with its engine: the first one of the first peer
// in the lines that may take one. The caller holds the mutex.
func (q *SharedQueue) whoIsNext() (*Conn, *Engine) {
	n := q.available()
	if n == 0 {
		return nil, nil
	}
	for i := range q.lines {
		for a := q.lines[i].first; a != nil; {
			next := a.next
			if a.held < n && !q.demote(a) {
				return a.first, a.first.share.eng
			}
			a = next
		}
	}
	return nil, nil
}

// join adds c to the end of its peer's line, and its peer to the end of the queue's line of its rank if it is not
// there: peers take turns. The caller holds the mutex.
func (q *SharedQueue) join(c *Conn) {
	s, now := c.share, c.eng.now
	q.countWaits(now)
	if s.waits {
		q.file(s.account)
		return
	}
	a := s.account
	a.known = a.known || s.bytes > 0
	a.countWaits(now)
	s.waits, s.eng, s.prev = true, c.eng, a.last
	if a.last == nil {
		a.first = c
	} else {
		a.last.share.next = c
	}
	a.last = c
	if a.waiting++; a.waiting == 1 {
		a.rank = q.rank(a, now)
		q.lines[a.rank].push(a)
	}
	q.waiting++
}

// quit takes c out of the line, if it is there. Its peer goes to the end. The caller holds the mutex.
func (q *SharedQueue) quit(c *Conn) {
	s := c.share
	if !s.waits {
		return
	}
	a, now := s.account, c.eng.now
	q.countWaits(now)
	a.countWaits(now)
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
	q.lines[a.rank].remove(a)
	if a.waiting--; a.waiting > 0 {
		a.rank = q.rank(a, now)
		q.lines[a.rank].push(a)
	}
}

// line is a line of peers.
type line struct{ first, last *account }

func (l *line) push(a *account) {
	if a.prev = l.last; a.prev == nil {
		l.first = a
	} else {
		a.prev.next = a
	}
	l.last = a
}

func (l *line) remove(a *account) {
	if a.prev == nil {
		l.first = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next == nil {
		l.last = a.prev
	} else {
		a.next.prev = a.prev
	}
	a.prev, a.next = nil, nil
}
