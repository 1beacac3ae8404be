package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/list"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// scheduler decides when the packets of an engine's connections leave (docs/decisions/0010-one-transmit-scheduler.md).
//
// A full packet leaves in its connection's turn: connections that have more to send take turns. A partial packet, which
// has room left, leaves out of time that the sender has to spare, since sharing packets saves time and nothing else:
//
//   - A token bucket. A partial packet takes a token. Idle time refills the bucket, 8 polls in a row without a post fill
//     it, and a sender that is busy gets one token for 32 posts.
//   - A token of the connection's own for each answer: the first message that it sends after it has received one.
//   - Nagle's algorithm (RFC 896) within a connection with many requests outstanding: it has one partial packet in flight.
//   - Doorbell batching: posts of a busy caller that has completions to take do not ask for a poll. It posts more, and polls
//     when it has none left.
//
// sendMode decides what a connection may send, and changes nothing. schedule queues the connection, and transmit sends.
// What waits is sent by a later Poll: the caller's, or the background owner's.
type scheduler struct {
	ready []*Conn // connections with a packet to send, in turns

	partials list.List[Conn] // connections with a partial packet that needs a token, oldest first
	noFrame  bool            // the link had no frame for the first of them

	bucket   time.Duration // tokens, in units of tokenTime
	idle     int           // polls in a row without a post
	posts    int           // since the last poll
	packets  int           // of the last poll, in and out
	busy     bool          // posts and packets explain the time between the last two polls
	deferred int           // posts in a row that did not ask for a poll
}

// turn is a connection's part of the scheduler.
type turn struct {
	ready    bool            // it is in ready
	partial  list.Node[Conn] // in partials
	received seq.Num         // messages that had arrived when the last of its own began to leave
}

// sendMode is what a connection may send now.
type sendMode uint8

const (
	sendNone    sendMode = iota // there is nothing to send, or it waits for the peer
	sendWindow                  // nothing: the congestion window is full, or the pacer says later
	sendCredit                  // nothing: the peer has promised no receive
	sendPartial                 // a partial packet, if there is a token
	sendPacket                  // a packet
)

// sends reports whether anything may leave.
func (m sendMode) sends() bool { return m >= sendPartial }

// sendMode says what may leave now. It has no side effects; see blockedBy.
func (c *Conn) sendMode() sendMode {
	s := &c.sent
	switch {
	case c.flow.rnr.waits || c.epoch.changing:
		return sendNone
	case s.Lost() > 0:
		if s.TailLossProbe() || c.cc.Open(c.eng.now, s.Pipe()) {
			return sendPacket
		}
		return sendWindow
	case c.readyPending || c.atBind():
		return sendPacket
	case s.Full():
		return sendNone
	case !c.cc.Open(c.eng.now, s.Pipe()):
		return sendWindow
	case c.resp.pending():
		return sendPacket
	}
	return c.requestMode()
}

// requestMode is sendMode where nothing but the requests themselves is in the way.
func (c *Conn) requestMode() sendMode {
	q := &c.sq
	if q.next.Op == q.counted {
		return sendNone
	}
	if q.next.Off == 0 {
		if m := c.waitsFor(q.at(q.next.Op)); m != sendPacket {
			return m
		}
	}
	switch {
	case q.unsent >= c.room():
		return sendPacket
	case q.outstanding() <= eagerRequests:
		if c.turn.received != c.recv.msn { // an answer
			return sendPacket
		}
		return sendPartial
	case c.sent.Partials() == 0: // Nagle's algorithm
		return sendPartial
	}
	return sendNone
}

// waitsFor is sendPacket if a request that has not begun need not wait. Else it waits for earlier reads that it
// fences, for a receive at the peer, or for the peer to be able to serve another read. Atomics count as reads.
func (c *Conn) waitsFor(w *work) sendMode {
	if w.flags&Fence != 0 && c.readsOut > 0 {
		return sendNone
	}
	switch w.op {
	case OpSend, OpWriteImm:
		if !c.flow.allows(c.sq.msn) {
			return sendCredit
		}
	case OpRead, OpFetchAdd, OpCmpSwap:
		if c.readsOut >= c.readsAllowed {
			return sendNone
		}
	default:
	}
	return sendPacket
}

// blockedBy arms what ends the wait of a connection that may send nothing.
func (c *Conn) blockedBy(m sendMode) {
	switch m {
	case sendWindow:
		c.cc.Limit()
		if c.sent.Pipe() == 0 {
			c.setDeadline(c.cc.NextSend())
		}
	case sendCredit:
		c.outOfCredit()
	default:
	}
}

// schedule queues the connection for what it may send.
func (c *Conn) schedule() {
	if c.turn.ready || !c.alive() {
		return
	}
	switch m := c.sendMode(); m {
	case sendPacket:
		c.turn.ready = true
		c.eng.sched.ready = append(c.eng.sched.ready, c)
	case sendPartial:
		c.eng.sched.push(c)
	default:
		c.blockedBy(m)
	}
}

// transmit sends what may leave: packets in turns, then partial packets as far as there are tokens.
func (e *Engine) transmit() {
	s := &e.sched
	if s.noFrame {
		e.transmitPartials()
	}
	n := len(s.ready)
	for i := 0; i < n; i++ {
		c := s.ready[i]
		more := c.alive() && c.sendBurst()
		if c.turn.ready = more; more {
			s.ready = append(s.ready, c)
		}
	}
	rest := copy(s.ready, s.ready[n:])
	clear(s.ready[rest:])
	s.ready = s.ready[:rest]
	e.transmitPartials()
}

// sendBurst sends the packets of a turn. A partial packet that needs a token is queued. It reports whether there is
// more that could be sent at once.
func (c *Conn) sendBurst() (more bool) {
	for range maxBurst {
		switch m := c.sendMode(); m {
		case sendPacket:
			if !c.sendOne() {
				return c.alive() && c.sendMode().sends()
			}
		case sendPartial:
			c.eng.sched.push(c)
			return false
		default:
			c.blockedBy(m)
			return false
		}
	}
	m := c.sendMode()
	c.blockedBy(m)
	return m.sends()
}

// sendOne sends the next packet: a lost one first. It reports false if nothing left.
func (c *Conn) sendOne() bool {
	if c.sent.Lost() > 0 {
		return c.retransmitNext()
	}
	return c.sendNext()
}

// transmitPartials sends partial packets, a token each, of the connections that have waited longest.
func (e *Engine) transmitPartials() {
	s := &e.sched
	s.noFrame = false
	for range maxTransmit {
		if !s.mayPartial() {
			return
		}
		c := s.partials.Front()
		if c.sendMode() == sendPartial {
			if !c.sendNext() && c.alive() {
				s.noFrame = true
				return
			}
			s.bucket -= tokenTime
		}
		s.remove(c)
		c.schedule() // there may be more by now
	}
}

// sendWaiting sends the partial packet of a connection that waits for nothing but a token, since the connection is about
// to end. It reports whether the connection has not ended meanwhile.
func (c *Conn) sendWaiting() bool {
	if c.alive() && c.sendMode() == sendPartial {
		c.sendNext()
		c.eng.allowFaults() // this is not within a Poll
	}
	return c.State() != Closed
}

// mayPartial reports whether a partial packet waits and there is a token for it.
func (s *scheduler) mayPartial() bool { return !s.partials.Empty() && s.bucket >= tokenTime }

// empty reports that no connection has anything to send.
func (s *scheduler) empty() bool { return len(s.ready) == 0 && s.partials.Empty() }

// posted takes in n posts.
func (s *scheduler) posted(n int) {
	if n > 0 {
		s.fill(time.Duration(n) * postTokens)
		s.posts += n
		s.idle = 0
	}
}

// polled takes in that a poll begins, some time after the last. Idle time is what posts and packets do not explain.
func (s *scheduler) polled(since time.Duration) {
	idle := since - time.Duration(s.posts)*postTime - time.Duration(s.packets)*packetTime
	s.busy = idle <= 0
	s.fill(max(idle, since/busyShare, 0))
	if s.idle++; s.idle >= pausePolls {
		s.bucket = bucketSize * tokenTime
	}
	s.posts = 0
}

// fill adds tokens, up to the size of the bucket.
func (s *scheduler) fill(d time.Duration) { s.bucket = min(s.bucket+d, bucketSize*tokenTime) }

// deferPost reports whether what was posted on c leaves with the poll that follows the completions which its consumer
// has left to take. Only so many posts in a row wait.
func (s *scheduler) deferPost(c *Conn) bool {
	if s.deferred < maxDeferred && s.busy && c.consuming() {
		s.deferred++
		return true
	}
	s.deferred = 0
	return false
}

// consuming reports whether the consumer of c has taken completions since the last call of consumed, and has more to take.
func (c *Conn) consuming() bool {
	return c.completions.Request.consuming() || c.completions.Recv.consuming()
}

// consumed reports whether the consumer of c has taken completions since the last call.
func (c *Conn) consumed() bool {
	request, recv := c.completions.Request.consumed(), c.completions.Recv.consumed()
	return request || recv
}

// push adds a connection to the end of those with a partial packet, if it is not one of them.
func (s *scheduler) push(c *Conn) {
	if n := &c.turn.partial; !n.Listed() {
		s.partials.PushBack(n, c)
	}
}

// remove takes a connection out of those with a partial packet, if it is one of them.
func (s *scheduler) remove(c *Conn) {
	if n := &c.turn.partial; n.Listed() {
		s.partials.Remove(n)
	}
}
