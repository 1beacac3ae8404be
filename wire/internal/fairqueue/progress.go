package fairqueue

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// bucket is the token bucket of a message that holds a buffer. Its tokens are time.
type bucket struct {
	left   time.Duration // tokens
	lowest time.Duration // smallest number of tokens so far

	// At the last refill: readings of the stopwatches of the queue and of the network, and bytes received.
	starved time.Duration
	delayed time.Duration
	bytes   uint64
}

// refill drains and fills the bucket. starved and delayed are the readings of two stopwatches. The queue's stopwatch
// (starved) runs while flows wait and no buffer is free. The network's stopwatch (delayed) runs while flows of the same
// network wait. Each reading has increased by some time since the last refill. The method removes the longer of
// these two times from the bucket. Then it adds the time that the bytes received since the last refill would take at
// MinRate, but fills the bucket only up to size.
func (b *bucket) refill(starved, delayed time.Duration, bytes uint64, size time.Duration) {
	drained := max(starved-b.starved, delayed-b.delayed)
	filled := time.Duration(min(bytes-b.bytes, 1<<30)) * (time.Second / MinRate)
	b.left = min(b.left-drained+filled, size)
	b.lowest = min(b.lowest, b.left)
	b.starved, b.delayed, b.bytes = starved, delayed, bytes
}

// stopwatch measures the time for which a condition holds.
type stopwatch struct {
	sum time.Duration
	at  clock.Time // time of the last count
}

// advance adds the time since its last call if the argument running is true. The engines that share a queue
// read the clock at different moments, so the argument now may be earlier than in the last call. Then advance does
// nothing.
func (s *stopwatch) advance(now clock.Time, running bool) {
	d := now.Sub(s.at)
	if d <= 0 {
		return
	}
	if running {
		s.sum += d
	}
	s.at = now
}

// advance updates the stopwatch of the queue. It is called before the number of waiting flows changes.
func (q *Queue[W]) advance(now clock.Time) { q.starved.advance(now, q.waiting > 0 && q.free == 0) }

// advance updates n.delayed, the stopwatch for the time in which flows of n wait. Here a network is the group of peers
// in one IPv4 /24 or IPv6 /64. The stopwatch runs even while buffers are free, because a group that has reached its
// threshold may not take a free buffer. The flows of such a group wait until another flow of the group releases a
// buffer.
func (n *network[W]) advance(now clock.Time) { n.delayed.advance(now, n.waiting > 0) }

// Timeout returns the progress timeout of a message.
func (q *Queue[W]) Timeout() time.Duration { return q.timeout }

// Holds reports whether the flow holds a buffer for a message that continues in a later packet.
func (f *Flow[W]) Holds() bool { return f.holds }

// Complete counts n bytes of a message that is complete. It needs no lock.
func (f *Flow[W]) Complete(n uint32) { f.received += uint64(n) }

// Hold begins to count a buffer that flow f holds, because the message of f continues in a later packet. The argument
// partial is the number of bytes of the message that have arrived.
func (q *Queue[W]) Hold(f *Flow[W], partial uint32, now clock.Time) {
	p := f.peer
	f.holds, f.pushedOut, f.since = true, false, now
	q.hold(p)
	q.messages.PushBack(&f.message, f)
	q.advance(now)
	p.net.advance(now)
	f.bucket = bucket{left: q.timeout, lowest: q.timeout, starved: q.starved.sum, delayed: p.net.delayed.sum, bytes: f.received + uint64(partial)}
}

// Release stops counting the buffer that f holds, because the message of f is complete or will never be complete. If
// the message was slow or pushed out, the peer and its network count as slow for SlowTime.
func (q *Queue[W]) Release(f *Flow[W], partial uint32, now clock.Time) {
	q.update(f, partial, now)
	p := f.peer
	f.holds = false
	q.unhold(p)
	q.messages.Remove(&f.message)
	if f.pushedOut || q.timeout-f.bucket.lowest >= SlowMessage {
		p.slowed = true
		q.slow.add(p.addr, now)
		q.slow.add(p.net.prefix, now)
	}
}

// TimeLeft returns the time after which the caller has to call it again. The result is zero or negative if the caller
// must end the message of f, because the message has stalled or is pushed out.
func (q *Queue[W]) TimeLeft(f *Flow[W], partial uint32, now clock.Time) time.Duration {
	q.update(f, partial, now)
	return min(f.bucket.left, q.pushOut(f, now))
}

// update updates the bucket of the message of f.
func (q *Queue[W]) update(f *Flow[W], partial uint32, now clock.Time) {
	q.advance(now)
	net := f.peer.net
	net.advance(now)
	f.bucket.refill(q.starved.sum, net.delayed.sum, f.received+uint64(partial), q.timeout)
}
