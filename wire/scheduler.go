package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/list"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// scheduler decides when the packets of an engine leave (docs/decisions/0010-one-transmit-scheduler.md).
//
// Connections with a full packet send in round robin order. A partial packet has room left, so later posts could share
// it, which saves time. An idle sender has time to spare: its partial packets leave at once. A busy sender delays them.
// These rules decide when a partial packet leaves:
//
//   - Token bucket. A partial packet takes a token. Idle time refills the bucket. After 8 polls in a row without a
//     post, the bucket is full. A busy sender gets one token for 32 posts.
//   - Response. The first message that a connection sends after it has received a message needs no token.
//   - Nagle's algorithm (RFC 896). A connection with more than nagleThreshold requests outstanding may have only one
//     partial packet in flight.
//   - Doorbell batching. While the consumer is busy taking completions, its posts do not ask for a poll. The consumer
//     polls anyway when no completion is left, and that poll serves all of these posts.
//
// The method sendMode decides what a connection may send now and has no side effects. The method schedule queues the
// connection, and the method transmit sends. A waiting packet leaves in a later Poll, which the consumer or the
// background owner calls.
type scheduler struct {
	ready []*Conn // connections with a packet to send, round robin

	partials list.List[Conn] // connections with a partial packet that waits for a token, oldest first
	noFrame  bool            // the link had no frame for the first of these packets

	bucket   time.Duration // tokens, in units of idle time; a token is tokenTime
	idle     int           // consecutive polls without a post
	posts    int           // posts since the last poll
	packets  int           // packets received and sent in the last poll
	busy     bool          // posts and packets took all the time between the last two polls
	deferred int           // consecutive posts that did not ask for a poll
}

// turn is the state of one connection in the scheduler.
type turn struct {
	ready    bool            // the connection is in scheduler.ready
	partial  list.Node[Conn] // position in scheduler.partials
	received seq.Num         // number of messages received when this side last began a message
}

// sendMode says what a connection may send now.
type sendMode uint8

const (
	sendNone    sendMode = iota // nothing: no data, or the data waits for the peer
	sendWindow                  // nothing: the congestion window or the pacer forbids it
	sendCredit                  // nothing: no credit
	sendPartial                 // a partial packet, if there is a token
	sendPacket                  // a packet, without a token
)

// sends reports whether the mode allows a packet.
func (m sendMode) sends() bool { return m >= sendPartial }

// sendMode returns what the connection may send now. It has no side effects; blockedBy has them.
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

// requestMode is the part of sendMode that looks at the send queue.
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
	case q.outstanding() <= nagleThreshold:
		if c.turn.received != c.recv.msn { // response to a message
			return sendPacket
		}
		return sendPartial
	case c.sent.Partials() == 0: // Nagle's algorithm
		return sendPartial
	}
	return sendNone
}

// waitsFor returns sendPacket if request w may begin now, and sendCredit if w waits for credit. It returns sendNone if
// w must wait until earlier reads or atomics have completed. There are two such cases: w has the flag Fence, or w is
// itself a read or an atomic and the peer serves no more of them at a time.
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

// blockedBy arms the timer of a connection that may not send now. m is the reason.
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

// schedule queues the connection if it may send.
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

// transmit sends a burst on each ready connection, then partial packets as long as there are tokens.
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

// sendBurst sends up to maxBurst packets. A partial packet that needs a token is queued instead. sendBurst reports
// whether the connection could send more now.
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

// sendOne sends the next packet: a lost one if there is any, otherwise a new one. It reports false if it has sent none.
func (c *Conn) sendOne() bool {
	if c.sent.Lost() > 0 {
		return c.retransmitNext()
	}
	return c.sendNext()
}

// transmitPartials sends one partial packet per token, first those that have waited longest.
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
		c.schedule() // more may have been posted
	}
}

// sendWaiting sends the waiting partial packet of a connection that is about to end, if the packet waits for nothing
// but a token. It reports false if the connection ended meanwhile.
func (c *Conn) sendWaiting() bool {
	if c.alive() && c.sendMode() == sendPartial {
		c.sendNext()
		c.eng.allowFaults() // the caller is outside of Poll
	}
	return c.State() != Closed
}

// mayPartial reports whether a partial packet waits and a token is available.
func (s *scheduler) mayPartial() bool { return !s.partials.Empty() && s.bucket >= tokenTime }

// empty reports whether no connection waits to send.
func (s *scheduler) empty() bool { return len(s.ready) == 0 && s.partials.Empty() }

// posted adds the tokens for n posts and notes that the consumer posts.
func (s *scheduler) posted(n int) {
	if n > 0 {
		s.fill(time.Duration(n) * postTokens)
		s.posts += n
		s.idle = 0
	}
}

// The method polled refills the token bucket at the start of a poll. The argument elapsed is the time since the last
// poll. The part of this time that posts and packets did not take is idle time.
func (s *scheduler) polled(elapsed time.Duration) {
	idle := elapsed - time.Duration(s.posts)*postTime - time.Duration(s.packets)*packetTime
	s.busy = idle <= 0
	s.fill(max(idle, elapsed/busyShare, 0))
	if s.idle++; s.idle >= pausePolls {
		s.bucket = bucketSize * tokenTime
	}
	s.posts = 0
}

// fill adds a time to the bucket, up to its size.
func (s *scheduler) fill(d time.Duration) { s.bucket = min(s.bucket+d, bucketSize*tokenTime) }

// deferPost reports whether a post on c is deferred: the post then does not ask for a poll. Such a post can wait,
// because the consumer is taking completions and will poll when none is left. At most maxDeferred posts in a row are
// deferred.
func (s *scheduler) deferPost(c *Conn) bool {
	if s.deferred < maxDeferred && s.busy && c.consuming() {
		s.deferred++
		return true
	}
	s.deferred = 0
	return false
}

// consuming reports whether the consumer of c takes completions now and has more to take.
func (c *Conn) consuming() bool {
	return c.completions.Request.consuming() || c.completions.Recv.consuming()
}

// consumed reports whether the consumer of c has taken completions since the last call.
func (c *Conn) consumed() bool {
	request, recv := c.completions.Request.consumed(), c.completions.Recv.consumed()
	return request || recv
}

// push appends a connection to the list of partial packets, unless it is in the list.
func (s *scheduler) push(c *Conn) {
	if n := &c.turn.partial; !n.Listed() {
		s.partials.PushBack(n, c)
	}
}

// remove removes a connection from the list of partial packets, if it is in the list.
func (s *scheduler) remove(c *Conn) {
	if n := &c.turn.partial; n.Listed() {
		s.partials.Remove(n)
	}
}
