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
type suspension struct {
	late     bool   // this Poll comes long after the one before
	rxPeers  uint32 // packets of peers, without end
	rxBefore uint32 // heard, before this Poll
	ended    Time   // end of the last stall
	catchUp  bool   // what arrived meanwhile is being read
	toAck    int    // slots of the table whose peers have not got their Ack yet
	nextAck  Time   // when the next of them get it
	past     suspensions
}

// resume notes the end of a stall. It is called at the beginning of a Poll.
func (e *Engine) detectSuspend(now Time) {
	s := &e.suspension
	s.rxBefore = s.rxPeers
	if s.late = now.Sub(e.now) >= suspendTime; !s.late {
		return
	}
	if at, ok := e.wheel.Next(); ok && now.Sub(Time(at)) >= suspendTime {
		s.past.add(now, now.Sub(max(Time(at), e.now)))
		e.resumed(now)
	}
}

// resumed begins to catch up.
func (e *Engine) resumed(now Time) {
	s := &e.suspension
	s.ended, s.catchUp, s.toAck, s.nextAck = now, true, len(e.table.slots), 0
}

// catchingUp reports whether timers have to wait: a Poll that filled its batch after a stall has not seen
// yet what the peers sent, and would resend what they acknowledged.
func (e *Engine) catchingUp(received int) bool {
	s := &e.suspension
	full := received >= maxReceive
	if s.late && full && !s.catchUp && s.rxPeers-s.rxBefore >= maxReceive/2 && e.now.Sub(s.ended) >= resumeAckPause {
		e.resumed(e.now)
	}
	s.catchUp = s.catchUp && full && e.now.Sub(s.ended) < catchUp
	return s.catchUp
}

// announce sends some peers an Ack after a stall.
func (e *Engine) ackAllPeers() {
	s := &e.suspension
	if s.catchUp || e.now < s.nextAck {
		return
	}
	for n := 0; s.toAck > 0 && n < resumeAckBatch; s.toAck-- {
		if c := e.table.slots[s.toAck-1].conn; c != nil && c.alive() {
			if !c.sendAck(0) {
				break // no frame: later
			}
			n++
		}
	}
	s.nextAck = e.now.Add(resumeAckEvery)
}

// watched is the time since a moment in which the engine was not stopped.
func (e *Engine) runTime(since Time) time.Duration {
	return e.now.Sub(since) - e.suspension.past.after(since)
}

// stops remembers the last times in which an engine was stopped. Those before are not forgiven.
type suspensions struct {
	ring  [64]suspensionEnd
	n     int           // without end
	total time.Duration // of all
}

type suspensionEnd struct {
	end    Time
	before time.Duration // total of those before
}

func (s *suspensions) add(end Time, d time.Duration) {
	s.ring[s.n%len(s.ring)] = suspensionEnd{end, s.total}
	s.n++
	s.total += d
}

// after is how long those took that ended after a moment.
func (s *suspensions) after(t Time) time.Duration {
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
