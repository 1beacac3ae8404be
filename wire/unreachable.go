package wire

import (
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// The kernel of a process that has ended answers its packets with ICMP port unreachable. Anybody can forge
// that, so that it only raises a suspicion: each connection to the address sends an Ack with AckRequest, some
// times. It breaks when nothing was heard for suspectTime since the first of these and the address was
// reported again after it. Any packet of the peer ends the suspicion.

// suspicion is a connection's part of that.
type suspicion struct {
	open  bool
	asked int  // questions so far
	since Time // of the first question
	next  Time // of the next one
}

// refusal is an address that was reported.
type refusal struct {
	at    netip.AddrPort
	told  Time // newest report
	left  int  // slots of the connection table still to be searched
	found bool // there is a connection to it
}

// refusals are the engine's part.
type refusals struct {
	link  link.Reporter // nil if the link learns of none
	batch [refusalBatch]netip.AddrPort
	known [maxRefusals]refusal
	n     int // of known in use
	at    Time
	asks  int // questions that may be sent before at is suspectPeriod ago
}

// takeRefusals takes in what the link has learnt and asks the peers in question.
func (e *Engine) takeRefusals() {
	r := &e.refusals
	for _, at := range r.batch[:r.link.Refused(r.batch[:])] {
		e.stats.Unreachable++
		r.note(at, e.now, len(e.table.slots))
	}
	if r.n == 0 {
		return
	}
	for i := range r.known[:r.n] {
		if k := &r.known[i]; k.left > 0 {
			e.search(k)
			break // one at a time
		}
	}
	r.forget(e.now)
}

// forget drops addresses without a connection, and those that were not reported for long.
func (r *refusals) forget(now Time) {
	for i := 0; i < r.n; i++ {
		if k := &r.known[i]; k.left == 0 && (!k.found || now.Sub(k.told) > suspectLimit) {
			r.n--
			*k = r.known[r.n]
			i--
		}
	}
}

// note remembers a report. One of an address that is being looked for already adds nothing but its time.
func (r *refusals) note(at netip.AddrPort, now Time, slots int) {
	for i := range r.known[:r.n] {
		if k := &r.known[i]; k.at == at {
			k.told = now
			if k.left == 0 {
				k.left = slots
			}
			return
		}
	}
	if r.n < len(r.known) {
		r.known[r.n] = refusal{at: at, told: now, left: slots}
		r.n++
	}
}

// search looks for connections to a reported address in a part of the table.
func (e *Engine) search(k *refusal) {
	for n := 0; k.left > 0 && n < searchBatch; n++ {
		c := e.table.slots[k.left-1].conn
		if c != nil && c.alive() && e.refusals.link.Destination(c.path) == k.at {
			k.found = true
			if !c.suspect() {
				return // no more questions now
			}
		}
		k.left--
	}
}

// suspect asks the peer of a connection whether it is there. It reports false if that has to wait.
func (c *Conn) suspect() bool {
	s, now := &c.suspicion, c.eng.now
	switch {
	case s.open && c.heard <= s.since:
		c.setDeadline(now) // it may be over now
		return true
	case now.Sub(s.since) < suspectRest && s.since != 0:
		return true // the peer has just answered
	case !c.eng.mayAsk():
		return false
	}
	*s = suspicion{open: true, asked: 1, since: now, next: now.Add(suspectRetry)}
	c.sendAck(proto.AckRequest)
	c.setDeadline(s.next)
	return true
}

// mayAsk takes a token of the limit of questions.
func (e *Engine) mayAsk() bool {
	r := &e.refusals
	if e.now.Sub(r.at) >= suspectPeriod {
		r.at, r.asks = e.now, suspectBurst
	}
	if r.asks == 0 {
		return false
	}
	r.asks--
	return true
}

// tickSuspicion asks again, or breaks the connection, and returns when to look again.
func (c *Conn) tickSuspicion() Time {
	s, now := &c.suspicion, c.eng.now
	since := now.Sub(s.since)
	switch {
	case !s.open:
		return never
	case c.heard > s.since || since > suspectLimit:
		s.open = false
		return never
	case s.asked >= suspectAsks && since >= max(suspectTime, 4*c.answerTime()) && c.eng.refusals.toldSince(c, s.since):
		c.breakDown(StatusTransport, proto.ReasonTimeout)
		return never
	case now >= s.next:
		s.next = now.Add(suspectRetry)
		if s.asked >= suspectAsks {
			s.next = now.Add(since) // a host that has sent many ICMP messages sends one a second
		}
		if c.eng.mayAsk() && c.sendAck(proto.AckRequest) {
			s.asked++
		}
	}
	return s.next
}

// toldSince reports whether the address of a connection was reported after a time.
func (r *refusals) toldSince(c *Conn, t Time) bool {
	for i := range r.known[:r.n] {
		if k := &r.known[i]; k.told > t && k.at == r.link.Destination(c.path) {
			return true
		}
	}
	return false
}

// next is when takeRefusals has something to do though nothing is reported.
func (r *refusals) next(now Time) Time {
	for i := range r.known[:r.n] {
		if r.known[i].left > 0 {
			if r.asks == 0 {
				return max(now, r.at.Add(suspectPeriod))
			}
			return now
		}
	}
	return never
}

// The times are for hosts near by: a peer answers within a millisecond unless it is stopped.
const (
	// suspectRetry is the time between the first suspectAsks questions, all of which may be lost; from then on it
	// doubles. suspectTime is how long a peer that was reported may take to answer.
	suspectRetry = 7500 * time.Microsecond
	suspectAsks  = 8
	suspectTime  = 60 * time.Millisecond
	// suspectRest is the least time between two suspicions of one connection that were unfounded.
	suspectRest = 100 * time.Millisecond
	// suspectLimit ends a suspicion that no second report confirms. Kernels send one a second at least
	// (net.ipv4.icmp_ratelimit).
	suspectLimit = 3 * time.Second
	// suspectBurst is how many questions an engine asks in suspectPeriod at most.
	suspectBurst  = 64
	suspectPeriod = 5 * time.Millisecond
	// maxRefusals is how many addresses are suspected at one time, refusalBatch how many reports a Poll
	// takes in, searchBatch how many slots of the connection table it searches.
	maxRefusals  = 8
	refusalBatch = 8
	searchBatch  = 64
)
