package stream

import "time"

// tidyInterval is how often the stack looks for streams that are idle. A stream on which no byte has moved between two
// looks gives the memory of its rings back.
const tidyInterval = time.Second

// hurryInterval is the least time between two looks, because a look costs time for each stream with large rings. A look
// that takes long makes this time longer: looks take at most a tenth of the time.
const hurryInterval = 100 * time.Millisecond

// idling is the part of a stack that takes the memory of large rings from idle streams. stack.mu guards the fields.
// One timer serves all streams. It runs only while untidy has streams.
type idling struct {
	untidy   map[*Conn]struct{} // streams with a ring that an idle stream does not have, and orphans
	timer    *time.Timer
	interval time.Duration // tidyInterval, except in tests
	looking  bool          // the stack looks now
	nextLook time.Time     // before this time no look begins
	short    bool          // a ring could not grow: the next look takes memory from streams that are used, too
}

// usage is what a stack knows of a stream.
type usage struct {
	used   bool // bytes have moved since the stack last looked (see stack.tidy)
	untidy bool // in stack.untidy
	moved  move // of an orphan
}

// keepTidy makes the stack look at a stream until its rings are those of an idle stream. Conn.mu is held.
func (s *stack) keepTidy(c *Conn) {
	if c.untidy {
		return
	}
	c.untidy = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.untidy[c] = struct{}{}
	if len(s.untidy) == 1 && !s.looking {
		s.start(s.interval)
	}
}

// start starts the timer. mu is held.
func (s *stack) start(d time.Duration) {
	if s.timer == nil {
		s.timer = time.AfterFunc(d, s.tidy)
	} else {
		s.timer.Reset(d)
	}
}

// rest stops the timer, which would keep the memory of a closed stack until it fires.
func (s *stack) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
}

// hurry makes the stack look for memory soon, because a ring could not grow.
func (s *stack) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.short || len(s.untidy) == 0 {
		return
	}
	s.short = true
	if !s.looking {
		s.start(max(0, time.Until(s.nextLook)))
	}
}

// tidy looks at the streams whose rings are larger than those of an idle stream.
func (s *stack) tidy() {
	began := time.Now()
	s.mu.Lock()
	short := s.short
	s.looking, s.short = true, false
	s.mu.Unlock()
	for _, c := range s.appendTo(nil, s.untidy) {
		if c.tidy(short) {
			c.free()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	pause := max(hurryInterval, 10*now.Sub(began))
	s.looking, s.nextLook = false, now.Add(pause)
	switch {
	case s.short: // a ring could not grow meanwhile
		s.start(pause)
	case len(s.untidy) > 0:
		s.start(max(s.interval, pause))
	}
}

// tidy shrinks the rings of a stream that has not been used since the last call. If memory is short, it shrinks those of
// addresses that use up their share, too. Bytes in a ring keep it as it is. If the peer of an orphan takes nothing any
// more, tidy returns true, and the caller frees the orphan, which resets it.
func (c *Conn) tidy(short bool) (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.life {
	case pending, closing, freed:
		return false
	case orphan:
		if over = c.stuck(time.Now()); over {
			c.adopt()
		}
		return over
	case inUse:
	}
	c.drain() // the peer may have shrunk its ring
	if !c.used || short && c.stack.memory.short(c.peer(), maxRing) {
		c.shrink()
	}
	c.used = false
	c.flush()
	c.handOver(nil)
	if c.phase == ended || c.tidied() {
		c.untidy = false
		c.stack.mu.Lock()
		delete(c.stack.untidy, c)
		c.stack.mu.Unlock()
	}
	return false
}

// tidied reports whether the rings of this end are those of an idle stream.
func (c *Conn) tidied() bool {
	in, out := &c.in, &c.out
	return out.size() == 0 &&
		in.size() <= minRing && !in.growing() && in.announced.buf == nil
}

// shrink frees the send ring, and replaces the receive ring by one of the first size, if they are empty.
func (c *Conn) shrink() {
	if b := &c.out; b.done == b.wrote && !b.growing() {
		c.freeRing(b.first)
		b.first = ring{}
	}
	if b := &c.in; b.received == b.consumed && b.size() > minRing && !b.growing() && b.announced.buf == nil {
		c.announce(minRing)
	}
}
