package stream

import (
	"sync"
	"sync/atomic"
)

// Stats are the counters of all streams of the process. Bytes are those of programs, so a retransmission does not count.
type Stats struct {
	InUse   int // streams that the program uses
	Pending int // streams that are being connected, or wait for Accept
	Orphans int // streams that are closed and have bytes to deliver

	Dialed     uint64 // dials that have succeeded
	DialErrors uint64 // dials that have failed
	Accepted   uint64 // streams that Accept has returned

	ReceivedBytes uint64 // bytes that have arrived
	WrittenBytes  uint64 // bytes that Write has taken
	RingBytes     int    // memory of the rings
}

// counters of calls
var dialed, dialErrors, accepts atomic.Uint64

// live has the streams of the process, and the bytes of those that have been freed.
var live struct {
	mu                sync.Mutex
	streams           map[*Conn]struct{}
	received, written uint64
}

// enroll counts a stream until it is freed.
func (c *Conn) enroll() {
	live.mu.Lock()
	defer live.mu.Unlock()
	if live.streams == nil {
		live.streams = make(map[*Conn]struct{})
	}
	live.streams[c] = struct{}{}
}

// withdraw keeps the bytes of a stream that is freed. Nothing uses it any more.
func (c *Conn) withdraw() {
	live.mu.Lock()
	defer live.mu.Unlock()
	delete(live.streams, c)
	live.received += c.in.received
	live.written += c.out.wrote
}

// ReadStats returns the counters. It looks at each stream for less than a microsecond. Any goroutine may call it.
func ReadStats() Stats {
	s := Stats{Dialed: dialed.Load(), DialErrors: dialErrors.Load(), Accepted: accepts.Load()}
	live.mu.Lock()
	s.ReceivedBytes, s.WrittenBytes = live.received, live.written
	all := make([]*Conn, 0, len(live.streams))
	for c := range live.streams {
		all = append(all, c)
	}
	live.mu.Unlock()
	for _, c := range all {
		s.add(c)
	}
	return s
}

// add adds a stream.
func (s *Stats) add(c *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.ReceivedBytes += c.in.received
	s.WrittenBytes += c.out.wrote
	switch {
	case c.life == freed: // meanwhile
		return
	case c.life == orphan:
		s.Orphans++
	case c.life == pending, c.phase == connecting, c.listener != nil:
		s.Pending++
	default:
		s.InUse++
	}
	for _, r := range [...]*ring{&c.in.first, &c.in.second, &c.in.announced, &c.out.first, &c.out.second} {
		s.RingBytes += len(r.buf)
	}
}

// countDial counts the result of a dial.
func countDial(err error) {
	if err != nil {
		dialErrors.Add(1)
	} else {
		dialed.Add(1)
	}
}
