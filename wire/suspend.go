package wire

import "time"

// A suspended host or a stopped process cannot receive. The time of a suspension must not count as silence of the
// peers. The engine detects a suspension by a Poll that comes long after a timer was due. The link may still hold
// packets that arrived during the suspension. The engine reads them before it runs timers. Other packets may have been
// dropped, and after such a long time without an answer, a peer waits long before it sends them again. So the engine
// sends each peer an Ack, which ends this back-off.
//
// If no timer was due for a long time, the next Poll cannot know whether the engine was suspended or just idle. Many
// waiting packets suggest a suspension. So if such a Poll finds a full batch of packets, and at least half of them are
// from peers, the engine reads all packets before it runs timers, and sends Acks. It does so at most once in
// resumeAckPause. A peer can imitate such a suspension with a burst of packets. Therefore the engine then sends at most as
// many Acks as it has read packets from peers, and the time since the last Poll counts as silence of the peers. Otherwise
// a burst could cause an Ack to each of thousands of peers, and the connection of the peer would never time out.

// suspension is the state of an engine for detecting and handling suspensions.
type suspension struct {
	isLate   bool   // this Poll comes suspendTime or more after the last one
	rxPeers  uint32 // number of packets from peers; wraps
	rxBefore uint32 // rxPeers at the beginning of this Poll
	endedAt  Time   // when the last suspension ended
	catchUp  bool   // the engine reads the packets that arrived during the suspension; timers wait
	toAck    int    // number of slots of the connection table whose peers still get an Ack
	maxAcks  int    // largest number of Acks that these peers get
	nextAck  Time   // when the next batch of Acks leaves
	history  suspensions
}

// detectSuspend checks at the beginning of a Poll whether the engine was suspended.
func (e *Engine) detectSuspend(now Time) {
	s := &e.suspension
	s.rxBefore = s.rxPeers
	if s.isLate = now.Sub(e.now) >= suspendTime; !s.isLate {
		return
	}
	if at, ok := e.timers.next(); ok && now.Sub(at) >= suspendTime {
		s.history.add(now, now.Sub(max(at, e.now)))
		e.resumed(now, len(e.table.slots))
	}
}

// resumed begins to read the backlog of the link, and schedules an Ack for each peer, up to maxAcks.
func (e *Engine) resumed(now Time, maxAcks int) {
	s := &e.suspension
	s.endedAt, s.catchUp, s.toAck, s.maxAcks, s.nextAck = now, true, len(e.table.slots), maxAcks, 0
}

// catchingUp reports whether timers must wait until the next Poll. After a suspension they wait while every Poll
// receives a full batch of packets. The link then holds more packets, which may acknowledge data that a timer would
// send again.
func (e *Engine) catchingUp(received int) bool {
	s := &e.suspension
	full := received >= maxReceive
	if s.isLate && full && !s.catchUp && s.rxPeers-s.rxBefore >= maxReceive/2 && e.now.Sub(s.endedAt) >= resumeAckPause {
		e.resumed(e.now, 0)
	}
	if s.catchUp {
		s.maxAcks += int(s.rxPeers - s.rxBefore)
	}
	s.catchUp = s.catchUp && full && e.now.Sub(s.endedAt) < catchUp
	return s.catchUp
}

// ackAllPeers sends an Ack on the next resumeAckBatch connections after a suspension, until maxAcks are sent.
func (e *Engine) ackAllPeers() {
	s := &e.suspension
	if s.catchUp || e.now < s.nextAck {
		return
	}
	for n := 0; s.toAck > 0 && s.maxAcks > 0 && n < resumeAckBatch; s.toAck-- {
		if c := e.table.slots[s.toAck-1].conn; c != nil && c.alive() {
			if !c.sendAck(0) {
				break // the link has no frame; the next batch continues here
			}
			n++
			s.maxAcks--
		}
	}
	if s.maxAcks == 0 {
		s.toAck = 0
	}
	s.nextAck = e.now.Add(resumeAckEvery)
}

// runTime returns how long the engine has run since start, without suspensions.
func (e *Engine) runTime(start Time) time.Duration {
	return e.now.Sub(start) - e.suspension.history.totalAfter(start)
}

// suspensions stores the last 64 suspensions. Older ones are not subtracted from a run time.
type suspensions struct {
	ring  [64]suspensionEnd
	n     int           // number of suspensions ever added
	total time.Duration // total length of all suspensions ever added
}

type suspensionEnd struct {
	end    Time
	before time.Duration // total length of all earlier suspensions
}

func (s *suspensions) add(end Time, d time.Duration) {
	s.ring[s.n%len(s.ring)] = suspensionEnd{end, s.total}
	s.n++
	s.total += d
}

// totalAfter returns the total length of the suspensions that ended after t.
func (s *suspensions) totalAfter(t Time) time.Duration {
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
