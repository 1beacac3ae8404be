package wire

import (
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/wire/internal/list"
)

// scheduler decides when the packets of an engine leave (docs/decisions/0010-one-transmit-scheduler.md).
//
// Connections with a full packet take turns, by network, address and connection (see turns). The more connections are
// ready, the shorter is a turn, so a round of turns is bounded. One Poll sends a bounded number of packets. Then the
// engine receives again.
//
// A partial packet has room left, so later posts could share it, which saves time. An idle sender has time to spare:
// its partial packets leave at once. A busy sender delays them. Connections with a partial packet take turns too. These
// rules decide when a partial packet leaves:
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
	senders
	ready    turns // connections with a packet to send
	partials turns // connections with a partial packet that waits for a token
	due      turns // connections whose timers are due
	noFrame  bool  // the link had no frame for the first of these packets

	bucket        time.Duration // tokens, in units of idle time; a token is tokenTime
	idlePolls     int           // consecutive polls without a post
	newPosts      int           // posts since the last poll
	lastPackets   int           // packets received and sent in the last poll
	busy          bool          // posts and packets took all the time between the last two polls
	deferredPosts int           // consecutive posts that did not ask for a poll
}

// turn is the state of one connection in the scheduler.
type turn struct {
	address *sendAddress               // address of the peer; nil before the connection knows it and after its end
	nodes   [turnKinds]list.Node[Conn] // positions in the queues of that address
}

func newScheduler() scheduler {
	return scheduler{
		senders:  senders{addresses: make(map[netip.Prefix]*sendAddress), networks: make(map[netip.Prefix]*sendNetwork)},
		ready:    turns{kind: readyTurns},
		partials: turns{kind: partialTurns},
		due:      turns{kind: dueTurns},
		bucket:   bucketSize * tokenTime,
	}
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
	case c.flow.rnr.waiting || c.epoch.changing:
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
	if q.nextPos.Op == q.counted {
		return sendNone
	}
	if q.nextPos.Off == 0 {
		if m := c.waitsFor(q.at(q.nextPos.Op)); m != sendPacket {
			return m
		}
	}
	switch {
	case q.unsent >= c.bodySize():
		return sendPacket
	case q.outstanding() <= nagleThreshold:
		if c.recv.answered != c.recv.msn { // response to a message
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
// itself a read or an atomic and the peer serves no more of them at a time. It also returns sendNone if w is a bind that
// has been executed and waits for other engines (see awaitOldKey).
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
	case OpBind:
		if w.executed && c.sq.oldKey != 0 {
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
		c.cc.Limit(c.sent.Pipe())
		c.setDeadline(c.cc.NextSend(c.eng.now, c.sent.Pipe()))
	case sendCredit:
		c.outOfCredit()
	default:
	}
}

// schedule queues the connection if it may send.
func (c *Conn) schedule() {
	s := &c.eng.sched
	if s.ready.isQueued(c) || !c.alive() {
		return
	}
	switch m := c.sendMode(); m {
	case sendPacket:
		s.ready.push(c)
	case sendPartial:
		s.partials.push(c)
	default:
		c.blockedBy(m)
	}
}

// The method transmit gives turns to ready connections, until it has sent maxTransmit packets. The number of turns is at
// most the number of connections that are ready when transmit begins. Then transmit sends partial packets as long as the
// token bucket has tokens.
func (e *Engine) transmit() {
	s := &e.sched
	if s.noFrame {
		e.transmitPartials()
	}
	if n := s.ready.conns; n > 0 {
		e.transmitReady(n, min(max(roundPackets/n, 1), maxBurst))
	}
	e.transmitPartials()
}

// transmitReady gives at most n turns of at most burst packets each, until it has sent maxTransmit packets. A turn in
// which nothing leaves counts as a packet, so the work of transmitReady is bounded.
func (e *Engine) transmitReady(n, burst int) {
	q := &e.sched.ready
	for left := maxTransmit; n > 0 && left > 0 && !q.empty(); n-- {
		c := q.nextConn()
		sent, more := c.sendBurst(min(burst, left))
		if q.pop(c); more && c.alive() {
			q.push(c)
		}
		left -= max(sent, 1)
	}
}

// sendBurst sends up to n packets. A partial packet that needs a token is queued instead. sendBurst returns the number
// of packets that have left, and whether the connection could send more now.
func (c *Conn) sendBurst(n int) (sent int, more bool) {
	if size := c.eng.caps.Group; size > 0 && !c.flow.single {
		g := min(c.cc.Group(), max(size/c.pmtu.Size, 1))
		if c.waitsForGroup(g) {
			c.blockedBy(sendWindow)
			return 0, false
		}
		n = min(n, g)
	}
	for ; sent < n; sent++ {
		switch m := c.sendMode(); m {
		case sendPacket:
			if !c.sendOne() {
				return sent, c.alive() && c.sendMode().sends()
			}
		case sendPartial:
			c.eng.sched.partials.push(c)
			return sent, false
		default:
			c.blockedBy(m)
			return sent, false
		}
	}
	m := c.sendMode()
	c.blockedBy(m)
	return sent, m.sends()
}

// waitsForGroup reports whether the window has no room for a group of n packets yet, and acknowledgements will make room.
func (c *Conn) waitsForGroup(n int) bool {
	s := &c.sent
	return s.Lost() == 0 && s.Pipe() >= n && c.sq.unsent >= n*c.bodySize() && !c.cc.Open(c.eng.now, s.Pipe()+n-1)
}

// sendOne sends the next packet: a lost one if there is any, otherwise a new one. It reports false if it has sent none.
func (c *Conn) sendOne() bool {
	if c.sent.Lost() > 0 {
		return c.retransmitNext()
	}
	return c.sendNext()
}

// transmitPartials sends one partial packet per token.
func (e *Engine) transmitPartials() {
	s := &e.sched
	s.noFrame = false
	for range maxTransmit {
		if !s.mayPartial() {
			return
		}
		c := s.partials.nextConn()
		if c.sendMode() == sendPartial {
			if !c.sendNext() && c.alive() {
				s.noFrame = true
				return
			}
			s.bucket -= tokenTime
		}
		s.partials.pop(c)
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
func (s *scheduler) mayPartial() bool { return !s.partials.empty() && s.bucket >= tokenTime }

// empty reports whether no connection waits to send.
func (s *scheduler) empty() bool { return s.ready.empty() && s.partials.empty() }

// addPosts adds the tokens for n posts and notes that the consumer posts.
func (s *scheduler) addPosts(n int) {
	if n > 0 {
		s.addTokens(time.Duration(n) * postTokens)
		s.newPosts += n
		s.idlePolls = 0
	}
}

// startPoll refills the token bucket at the start of a poll. The argument elapsed is the time since the last
// poll. The part of this time that posts and packets did not take is idle time.
func (s *scheduler) startPoll(elapsed time.Duration) {
	idle := elapsed - time.Duration(s.newPosts)*postTime - time.Duration(s.lastPackets)*packetTime
	s.busy = idle <= 0
	s.addTokens(max(idle, elapsed/busyShare, 0))
	if s.idlePolls++; s.idlePolls >= pausePolls {
		s.bucket = bucketSize * tokenTime
	}
	s.newPosts = 0
}

// addTokens adds a time to the bucket, up to its size.
func (s *scheduler) addTokens(d time.Duration) { s.bucket = min(s.bucket+d, bucketSize*tokenTime) }

// deferPost reports whether a post on c is deferred: the post then does not ask for a poll. Such a post can wait,
// because the consumer is taking completions and will poll when none is left. At most maxDeferred posts in a row are
// deferred.
func (s *scheduler) deferPost(c *Conn) bool {
	if s.deferredPosts < maxDeferred && s.busy && c.consuming() {
		s.deferredPosts++
		return true
	}
	s.deferredPosts = 0
	return false
}

// consuming reports whether the consumer of c takes completions now and has more to take.
func (c *Conn) consuming() bool {
	return c.completions.Request.isConsumed() || c.completions.Recv.isConsumed()
}

// consumed reports whether the consumer of c has taken completions since the last call.
func (c *Conn) consumed() bool {
	request, recv := c.completions.Request.consumedSinceCheck(), c.completions.Recv.consumedSinceCheck()
	return request || recv
}

// leave removes a connection that has ended.
func (s *scheduler) leave(c *Conn) {
	s.ready.remove(c)
	s.partials.remove(c)
	s.due.remove(c)
	s.senders.leave(c)
}
