package wire

import "time"

// partials are the connections that have less than a packet to send, in the order in which they came to have it, and
// what of them may leave. Where a packet costs what many posts cost, a consumer that posts to many connections in
// turn would send a packet for each message, though others to the same connection are about to follow: each packet
// that is not full is therefore paid for with posts. After a pause a number of them is free
// (docs/decisions/0005-packets-that-are-not-full-are-paid-for.md).
type partials struct {
	head, tail *Conn
	budget     time.Duration
	polls      int  // since the last post
	posts      int  // since the last poll
	moved      int  // packets of the last poll, in and out
	hasty      bool // posts and packets took the time between the last two polls
	blocked    bool // the link had no frame for the first of them
}

func (l *partials) empty() bool { return l.head == nil }

// payable reports whether one of them may leave.
func (l *partials) payable() bool { return l.head != nil && l.budget >= partialPrice }

// posted notes posts.
func (l *partials) posted(n int) {
	if n == 0 {
		return
	}
	l.budget = min(l.budget+time.Duration(n)*postPays, partialBurst*partialPrice)
	l.posts += n
	l.polls = 0
}

// polled notes a poll, so long after the last. Time pays too, above all what posts and packets do not explain, and nothing
// posted for some polls is a pause.
func (l *partials) polled(since time.Duration) {
	spare := since - time.Duration(l.posts)*postTime - time.Duration(l.moved)*packetTime
	l.hasty = spare <= 0
	l.budget = min(l.budget+max(spare, since/anyShare, 0), partialBurst*partialPrice)
	if l.polls++; l.polls >= idlePolls {
		l.release()
	}
	l.posts = 0
}

// release makes as many free as there are after a pause.
func (l *partials) release() { l.budget = partialBurst * partialPrice }

// push puts a connection at the end of the line, if it is not in it.
func (l *partials) push(c *Conn) {
	if c.inPartials {
		return
	}
	c.inPartials = true
	if c.partialBefore = l.tail; l.tail == nil {
		l.head = c
	} else {
		l.tail.partialAfter = c
	}
	l.tail = c
}

// remove takes a connection out of the line, if it is in it.
func (l *partials) remove(c *Conn) {
	if !c.inPartials {
		return
	}
	before, after := c.partialBefore, c.partialAfter
	if before == nil {
		l.head = after
	} else {
		before.partialAfter = after
	}
	if after == nil {
		l.tail = before
	} else {
		after.partialBefore = before
	}
	c.inPartials, c.partialBefore, c.partialAfter = false, nil, nil
}

// transmitPartials sends packets that are not full, of as many connections as may.
func (e *Engine) transmitPartials() {
	l := &e.partials
	l.blocked = false
	for range maxTransmit {
		if !l.payable() {
			return
		}
		c := l.head
		if c.sendable() == duePartial {
			if !c.sendNext() && c.alive() {
				l.blocked = true
				return
			}
			l.budget -= partialPrice
		}
		l.remove(c)
		if c.alive() {
			c.makeReady() // there may be more by now
		}
	}
}

// Hasty reports whether the time between the last two Polls went into posts and packets: who has posted so will do so
// again at once.
func (e *Engine) Hasty() bool { return e.partials.hasty }

// Release has small messages that wait for more to share their packets leave with the next Poll, the 64 oldest if there are
// more: their consumer does not go on posting.
func (e *Engine) Release() { e.partials.release() }
