package wire

// partials are the connections that have less than a packet to send, in the order in which they came to have it, and
// what of them may leave. Where a packet costs what fifty posts cost, a consumer that posts to many connections in
// turn would send a packet for each message, though others to the same connection are about to follow: each packet
// that is not full is therefore paid for with posts. A consumer that is idle, polling in vain, pays nothing.
type partials struct {
	head, tail *Conn
	budget     int // in posts
	vain       int // polls since the last post
}

func (l *partials) empty() bool { return l.head == nil }

// due reports whether one of them may leave.
func (l *partials) due() bool { return l.head != nil && l.budget >= partialPrice }

// posted notes a post, polled a poll: with enough of them and no post between, whatever waits may leave.
func (l *partials) posted() { l.budget, l.vain = min(l.budget+1, partialBurst*partialPrice), 0 }

// answerable notes a packet that came for a connection with little outstanding: its answer is paid for.
func (l *partials) answerable() { l.budget = min(l.budget+partialPrice, partialBurst*partialPrice) }

func (l *partials) polled() {
	if l.vain++; l.vain >= idlePolls {
		l.release()
	}
}

// release lets as many leave as at first.
func (l *partials) release() { l.budget = partialBurst * partialPrice }

func (l *partials) push(c *Conn) {
	if c.inPartial {
		return
	}
	c.inPartial = true
	if l.tail == nil {
		l.head = c
	} else {
		l.tail.nextPartial = c
	}
	l.tail = c
}

func (l *partials) pop() *Conn {
	c := l.head
	if l.head = c.nextPartial; l.head == nil {
		l.tail = nil
	}
	c.nextPartial, c.inPartial = nil, false
	return c
}

// transmitPartials sends packets that are not full, of as many connections as may.
func (e *Engine) transmitPartials() {
	for range maxTransmit {
		if !e.partials.due() {
			return
		}
		c := e.partials.pop()
		if !c.alive() || c.inReady {
			continue
		}
		if c.due() == duePartial {
			e.partials.budget -= partialPrice
			if sent := c.sendNext(); !c.alive() {
				continue
			} else if !sent {
				e.partials.push(c) // no frames: for another Poll
				return
			}
		}
		c.makeReady() // there may be more by now
	}
}

// Release has what waits for more to share its packet leave with the next Poll: its consumer is in no hurry to post more.
func (e *Engine) Release() { e.partials.release() }
