package wire

import "time"

// An engine that nobody polled for long, though a timer was due, was stopped with its process or its host. It could not
// hear its peers then, so that this time does not count as their silence. What they sent waits in the link, as much of it
// as fitted there, and is read before the timers run. Then each peer gets an Ack, since its timeouts are long by now and
// packets of it may have been dropped.
//
// An engine without a timer that is due may have slept: whether it was stopped cannot be told. It may have been if it then
// finds a batch of packets of its peers. It reads first and tells its peers too, seldom, but forgives nobody: a silence
// that a burst of packets could prolong would have no end.

// stall is the engine's part of that.
type stall struct {
	gap   bool   // this Poll comes long after the one before
	heard uint32 // packets of peers, without end
	was   uint32 // heard, before this Poll
	over  Time   // end of the last stall
	catch bool   // what arrived meanwhile is being read
	left  int    // slots of the table whose peers have not got their Ack yet
	at    Time   // when the next of them get it
	stops stops
}

// resume notes the end of a stall. It is called at the beginning of a Poll.
func (e *Engine) resume(now Time) {
	s := &e.stall
	s.was = s.heard
	if s.gap = now.Sub(e.now) >= stallTime; !s.gap {
		return
	}
	if at, ok := e.wheel.Next(); ok && now.Sub(Time(at)) >= stallTime {
		s.stops.add(now, now.Sub(max(Time(at), e.now)))
		e.endStall(now)
	}
}

// endStall begins to catch up.
func (e *Engine) endStall(now Time) {
	s := &e.stall
	s.over, s.catch, s.left, s.at = now, true, len(e.table.slots), 0
}

// catchingUp reports whether timers have to wait: a Poll that filled its batch after a stall has not seen
// yet what the peers sent, and would resend what they acknowledged.
func (e *Engine) catchingUp(received int) bool {
	s := &e.stall
	full := received >= maxReceive
	if s.gap && full && !s.catch && s.heard-s.was >= maxReceive/2 && e.now.Sub(s.over) >= announcePause {
		e.endStall(e.now)
	}
	s.catch = s.catch && full && e.now.Sub(s.over) < catchUp
	return s.catch
}

// announce sends some peers an Ack after a stall.
func (e *Engine) announce() {
	s := &e.stall
	if s.catch || e.now < s.at {
		return
	}
	for n := 0; s.left > 0 && n < announceBatch; s.left-- {
		if c := e.table.slots[s.left-1].conn; c != nil && c.alive() {
			if !c.sendAck(0) {
				break // no frame: later
			}
			n++
		}
	}
	s.at = e.now.Add(announceEvery)
}

// watched is the time since a moment in which the engine was not stopped.
func (e *Engine) watched(since Time) time.Duration {
	return e.now.Sub(since) - e.stall.stops.after(since)
}

// stops remembers the last times in which an engine was stopped. Those before are not forgiven.
type stops struct {
	ring  [64]stop
	n     int           // without end
	total time.Duration // of all
}

type stop struct {
	end    Time
	before time.Duration // total of those before
}

func (s *stops) add(end Time, d time.Duration) {
	s.ring[s.n%len(s.ring)] = stop{end, s.total}
	s.n++
	s.total += d
}

// after is how long those took that ended after a moment.
func (s *stops) after(t Time) time.Duration {
	before := s.total
	for i := s.n - 1; i >= max(s.n-len(s.ring), 0); i-- {
		x := &s.ring[i%len(s.ring)]
		if x.end <= t {
			break
		}
		before = x.before
	}
	return s.total - before
}
