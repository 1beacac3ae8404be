package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/list"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// scheduler decides when packets leave (docs/decisions/0010-one-transmit-scheduler.md).
//
// A full packet leaves when its connection has its turn, round robin. A partial packet, which has room left, leaves
// only if the sender has time to spare. Sharing a packet saves time, so an idle sender gains nothing by it. The rules
// for partial packets:
//
//   - Token bucket. A partial packet takes a token. Idle time refills the bucket, and 8 polls in a row without a post
//     fill it. A busy sender gets one token for 32 posts.
//   - Response. The first message that a connection sends after it has received one needs no token.
//   - Nagle's algorithm (RFC 896). A connection with more than nagleThreshold requests outstanding has one partial
//     packet in flight.
//   - Doorbell batching. A post asks for no poll if its caller is busy and has completions to take. The caller posts
//     more and polls once no completion is left.
//
// sendMode decides what a connection may send and has no side effects. schedule queues the connection, and transmit
// sends. A waiting packet leaves in a later Poll of the caller or of the background owner.
type scheduler struct {
	ready []*Conn // connections with a packet to send, round robin

	partials list.List[Conn] // connections with a partial packet that needs a token, oldest first
	noFrame  bool            // the link had no frame for the first partial packet

	bucket   time.Duration // tokens, as the idle time that they stand for: tokenTime each
	idle     int           // consecutive polls without a post
	posts    int           // since the last poll
	packets  int           // received and sent in the last poll
	busy     bool          // posts and packets account for the time between the last two polls
	deferred int           // consecutive posts that asked for no poll
}

// turn is the scheduler's state of a connection.
type turn struct {
	ready    bool            // in scheduler.ready
	partial  list.Node[Conn] // in partials
	received seq.Num         // messages received before the last own message began
}

// sendMode says what a connection may send now.
type sendMode uint8

const (
	sendNone    sendMode = iota // nothing to send, or it waits for the peer
	sendWindow                  // nothing: congestion window or pacer
	sendCredit                  // nothing: no credit
	sendPartial                 // a partial packet, for a token
	sendPacket                  // a packet, without a token
)

// sends reports whether the mode allows a packet.
func (m sendMode) sends() bool { return m >= sendPartial }

// sendMode returns what the connection may send now. It has no side effects; blockedBy has those.
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

// requestMode is the part of sendMode that depends on the send queue.
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

// waitsFor returns sendPacket if a request may begin. Otherwise the request waits for a fence, for credit, or until the
// peer can serve another read. Atomics count as reads.
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

// blockedBy arms the timer of a connection that may send nothing.
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

// transmit sends a burst of each ready connection, then partial packets while there are tokens.
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

// sendBurst sends up to maxBurst packets, and queues a partial packet that needs a token. It reports whether the
// connection could send more now.
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

// sendOne sends the next packet, lost ones first. It reports false if none left.
func (c *Conn) sendOne() bool {
	if c.sent.Lost() > 0 {
		return c.retransmitNext()
	}
	return c.sendNext()
}

// transmitPartials sends one partial packet per token, of the connections that have waited longest.
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

// sendWaiting sends the partial packet of a connection that is about to end, if the packet waits for a token only. It
// reports false if the connection ended meanwhile.
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

// posted accounts for n posts.
func (s *scheduler) posted(n int) {
	if n > 0 {
		s.fill(time.Duration(n) * postTokens)
		s.posts += n
		s.idle = 0
	}
}

// polled accounts for the start of a poll. since is the time from the last poll; idle time is the part that posts and
// packets do not account for.
func (s *scheduler) polled(since time.Duration) {
	idle := since - time.Duration(s.posts)*postTime - time.Duration(s.packets)*packetTime
	s.busy = idle <= 0
	s.fill(max(idle, since/busyShare, 0))
	if s.idle++; s.idle >= pausePolls {
		s.bucket = bucketSize * tokenTime
	}
	s.posts = 0
}

// fill adds idle time to the bucket, up to its size.
func (s *scheduler) fill(d time.Duration) { s.bucket = min(s.bucket+d, bucketSize*tokenTime) }

// deferPost reports whether a post on c should ask for no poll, because the consumer will poll anyway when it has taken
// its completions. At most maxDeferred posts in a row are deferred.
func (s *scheduler) deferPost(c *Conn) bool {
	if s.deferred < maxDeferred && s.busy && c.consuming() {
		s.deferred++
		return true
	}
	s.deferred = 0
	return false
}

// consuming reports whether the consumer of c is taking completions and has more to take.
func (c *Conn) consuming() bool {
	return c.completions.Request.consuming() || c.completions.Recv.consuming()
}

// consumed reports whether the consumer of c has taken completions since the last call.
func (c *Conn) consumed() bool {
	request, recv := c.completions.Request.consumed(), c.completions.Recv.consumed()
	return request || recv
}

// push appends a connection to the list of partial packets, if it is not in it.
func (s *scheduler) push(c *Conn) {
	if n := &c.turn.partial; !n.Listed() {
		s.partials.PushBack(n, c)
	}
}

// remove takes a connection out of the list of partial packets, if it is in it.
func (s *scheduler) remove(c *Conn) {
	if n := &c.turn.partial; n.Listed() {
		s.partials.Remove(n)
	}
}
