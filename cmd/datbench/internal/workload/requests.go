package workload

import (
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// shapeRequests returns the shape of a request-response (rr) row. It has two receives per outstanding request: one
// receive can take a message while the slot of the other receive waits to be reposted.
func shapeRequests(r plan.Spec) (i, t shape) {
	both := shape{numSources: 1, messageSlots: 2 * r.QueueDepth(), numRequests: r.QueueDepth() + spare}
	return both, both
}

// requestSend keeps a fixed number of requests in flight. The target answers each message with a message, in order.
func requestSend(c *Conn, r *result.Result) (measure.Evidence, error) {
	var asked, answered, seen int64
	c.onReceive = func(slot, _ int) error {
		answered++
		return c.receive(slot)
	}
	request, depth := c.mem.sources[0], int64(c.row.QueueDepth())
	watch, now := newStopwatch(c), time.Now()
	began := make([]time.Time, depth)
	for over := false; !over; {
		for ; asked-seen < depth; asked++ {
			began[asked%depth] = now
			if err := c.send(request); err != nil {
				return measure.Evidence{}, err
			}
		}
		if _, err := c.poll(); err != nil {
			return measure.Evidence{}, err
		}
		for ; seen < answered && !over; seen++ {
			now = time.Now()
			over = watch.lap(seen, began[seen%depth], now)
		}
	}
	return watch.fill(r), c.pollUntil(func() bool { return answered == asked })
}
