package fairqueue

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// bucket is the token bucket of an unfinished message. Its tokens are time.
type bucket struct {
	left    time.Duration
	lowest  time.Duration // least that was left
	starved time.Duration // readings of the stopwatches of the queue and of the network, and bytes received, at the last update
	delayed time.Duration
	bytes   uint64
}

// update takes out the time in which others have waited, and fills in that of the bytes that have arrived, up to most.
func (b *bucket) update(starved, delayed time.Duration, bytes uint64, most time.Duration) {
	drained := max(starved-b.starved, delayed-b.delayed)
	filled := time.Duration(min(bytes-b.bytes, 1<<30)) * (time.Second / MinRate)
	b.left = min(b.left-drained+filled, most)
	b.lowest = min(b.lowest, b.left)
	b.starved, b.delayed, b.bytes = starved, delayed, bytes
}

// stopwatch measures the time for which a condition holds.
type stopwatch struct {
	sum time.Duration
	at  clock.Time // until when
}

// count adds the time until now if the watch was running. Callers do not agree on the time exactly: an earlier one counts
// as none.
func (s *stopwatch) count(now clock.Time, running bool) {
	d := now.Sub(s.at)
	if d <= 0 {
		return
	}
	if running {
		s.sum += d
	}
	s.at = now
}

// count brings the queue's stopwatch up to date. It is called before the number of waiting flows changes.
func (q *Queue[W]) count(now clock.Time) { q.starved.count(now, q.waiting > 0 && q.free == 0) }

// count brings the network's stopwatch up to date. Peers of a network, and hosts behind one address, wait for each other
// also while buffers are free that the thresholds keep for other networks.
func (n *network[W]) count(now clock.Time) { n.delayed.count(now, n.waiting > 0) }

// Timeout is how long a message may make no progress.
func (q *Queue[W]) Timeout() time.Duration { return q.timeout }

// Holds reports whether the flow holds a buffer for a message that goes on in another packet.
func (f *Flow[W]) Holds() bool { return f.holds }

// Complete counts the bytes of a message that is whole. It needs no lock.
func (f *Flow[W]) Complete(n uint32) { f.received += uint64(n) }

// Hold counts the buffer of a message of f that goes on in another packet; partial bytes of it have arrived.
func (q *Queue[W]) Hold(f *Flow[W], partial uint32, now clock.Time) {
	p := f.peer
	f.holds = true
	p.held++
	p.net.held++
	q.count(now)
	p.net.count(now)
	f.bucket = bucket{left: q.timeout, lowest: q.timeout, starved: q.starved.sum, delayed: p.net.delayed.sum, bytes: f.received + uint64(partial)}
}

// Release stops counting the buffer of a message that is whole, or will not be. A peer whose message was slow is slow for
// SlowTime.
func (q *Queue[W]) Release(f *Flow[W], partial uint32, now clock.Time) {
	q.update(f, partial, now)
	p := f.peer
	f.holds = false
	p.held--
	p.net.held--
	if q.timeout-f.bucket.lowest >= SlowMessage {
		p.slowed = true
		q.slow.add(p.addr, now)
		q.slow.add(p.net.prefix, now)
	}
}

// TimeLeft returns how long it takes until the message of f counts as stalled, if no more of it arrives. The result is zero
// or negative if the message counts as stalled already.
func (q *Queue[W]) TimeLeft(f *Flow[W], partial uint32, now clock.Time) time.Duration {
	q.update(f, partial, now)
	return f.bucket.left
}

// update brings the bucket of f's message up to date.
func (q *Queue[W]) update(f *Flow[W], partial uint32, now clock.Time) {
	q.count(now)
	net := f.peer.net
	net.count(now)
	f.bucket.update(q.starved.sum, net.delayed.sum, f.received+uint64(partial), q.timeout)
}
