package wire

import "time"

// A suspended host or a stopped process cannot receive, so that time must not count as silence of the peers. The engine
// detects a suspension by a Poll that comes long after a timer was due. The link still holds packets that arrived
// meanwhile, as many as fit: the engine reads them before it runs timers. Then it sends each peer an Ack, because the
// retransmission timeouts of the peers are long by now and their packets may have been dropped.
//
// Without a due timer, a late Poll may only mean that the engine slept. If that Poll finds a batch of packets from
// peers, the engine reads first and sends Acks too, at most once in resumeAckPause. But it does not subtract the time
// from the peers' silence: otherwise a peer that sends bursts of packets could prolong its timeouts without end.

// suspension is the state of suspension handling on an engine.
type suspension struct {
	late     bool   // this Poll comes suspendTime or more after the one before
	rxPeers  uint32 // packets from peers; wraps
	rxBefore uint32 // rxPeers before this Poll
	ended    Time   // when the last suspension ended
	catchUp  bool   // the engine reads the packets that arrived meanwhile; timers wait
	toAck    int    // slots of the connection table whose peers still get an Ack
	nextAck  Time   // when the next batch of Acks leaves
	past     suspensions
}

// detectSuspend notices at the beginning of a Poll that the engine was suspended.
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

// resumed begins to read the backlog of the link, and schedules an Ack for each peer.
func (e *Engine) resumed(now Time) {
	s := &e.suspension
	s.ended, s.catchUp, s.toAck, s.nextAck = now, true, len(e.table.slots), 0
}

// catchingUp reports whether timers have to wait for the next Poll. If a Poll after a suspension fills its receive
// batch, the link holds more packets. They may acknowledge what a timer would send again.
func (e *Engine) catchingUp(received int) bool {
	s := &e.suspension
	full := received >= maxReceive
	if s.late && full && !s.catchUp && s.rxPeers-s.rxBefore >= maxReceive/2 && e.now.Sub(s.ended) >= resumeAckPause {
		e.resumed(e.now)
	}
	s.catchUp = s.catchUp && full && e.now.Sub(s.ended) < catchUp
	return s.catchUp
}

// ackAllPeers sends an Ack on the next resumeAckBatch connections after a suspension.
func (e *Engine) ackAllPeers() {
	s := &e.suspension
	if s.catchUp || e.now < s.nextAck {
		return
	}
	for n := 0; s.toAck > 0 && n < resumeAckBatch; s.toAck-- {
		if c := e.table.slots[s.toAck-1].conn; c != nil && c.alive() {
			if !c.sendAck(0) {
				break // the link has no frame; the next batch goes on
			}
			n++
		}
	}
	s.nextAck = e.now.Add(resumeAckEvery)
}

// runTime returns how long the engine ran since a moment, suspensions excluded.
func (e *Engine) runTime(since Time) time.Duration {
	return e.now.Sub(since) - e.suspension.past.after(since)
}

// suspensions remembers the last 64 suspensions. Older ones are not subtracted from a run time.
type suspensions struct {
	ring  [64]suspensionEnd
	n     int           // suspensions ever added
	total time.Duration // length of all ever added
}

type suspensionEnd struct {
	end    Time
	before time.Duration // length of all earlier ones
}

func (s *suspensions) add(end Time, d time.Duration) {
	s.ring[s.n%len(s.ring)] = suspensionEnd{end, s.total}
	s.n++
	s.total += d
}

// after returns the total length of the suspensions that ended after t.
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
