package ends

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/dat"
)

// request is a connection request that keeps every bound.
type request struct {
	cr   *dat.CR
	from netip.Addr
	ask  workload.Ask
}

// door decides which request a target takes: one row at a time, all rows of a job one after the other. Whoever comes
// meanwhile is told at once who has the target. One goroutine enters requests, another takes and leaves.
type door struct {
	mu sync.Mutex
	// holder has the target; nil if nobody has.
	holder *holder
	// first are requests for the first connection of a row, which wait to be taken.
	first []request
	// came has a token when first has changed, joins what follows the first request of the holder's row.
	came  chan struct{}
	joins chan request
}

// holder is the job that has the target.
type holder struct {
	request
	since time.Time
	// over is set when the row is measured. If no other row of the job follows, the next request can wait: it will be
	// taken in a moment.
	over bool
}

// maxFirst is requests that wait for a row that is nearly over.
const maxFirst = 16

func newDoor() *door {
	return &door{came: make(chan struct{}, 1), joins: make(chan request, plan.MaxConnections)}
}

// enter lets a request wait to be taken, or returns why it is refused.
func (d *door) enter(r request) (refusal error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.holder
	switch {
	case r.ask.Index > 0:
		return d.join(r)
	case h != nil && !h.same(r) && !(h.over && !h.ask.Spec.More), len(d.first) >= maxFirst:
		return h.taken()
	}
	d.first = append(d.first, r)
	d.tell()
	return nil
}

// join is for the further connections of the holder's row.
func (d *door) join(r request) error {
	h := d.holder
	if h == nil || !h.same(r) || h.ask.Session != r.ask.Session || len(d.joins) == cap(d.joins) {
		return fmt.Errorf("connection %d is of a row that is not being measured: run it again", r.ask.Index+1)
	}
	d.joins <- r
	return nil
}

func (d *door) tell() {
	select {
	case d.came <- struct{}{}:
	default:
	}
}

// same is whether a request is of the holder's job.
func (h *holder) same(r request) bool { return h.from == r.from && h.ask.Job == r.ask.Job }

// take waits for the next row, and returns what is refused because of it. While another row of the holder's job is to
// follow, that is what it waits for, no longer than jobGap. It returns false when the context is done.
func (d *door) take(ctx context.Context) (r request, refused []request, ok bool) {
	gap := time.NewTimer(jobGap)
	defer gap.Stop()
	for {
		if r, refused, ok = d.pop(); ok {
			return r, refused, true
		}
		select {
		case <-ctx.Done():
			return r, nil, false
		case <-d.came:
		case <-gap.C:
			d.leave(false)
		}
	}
}

// pop makes the first request that waits the holder.
func (d *door) pop() (r request, refused []request, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.first) == 0 {
		return r, nil, false
	}
	r, refused, d.first = d.first[0], d.first[1:], nil
	next := &holder{request: r, since: time.Now()}
	if h := d.holder; h != nil && h.same(r) {
		next.since = h.since
	}
	d.holder = next
	for len(d.joins) > 0 {
		<-d.joins // of a row that has failed
	}
	return r, refused, true
}

// over says that the holder's row is measured.
func (d *door) over() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holder.over = true
}

// leave ends the holder's row. The target stays the job's if another row of it is to follow.
func (d *door) leave(more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !more {
		d.holder = nil
	}
}

// refusal says who has the target.
func (d *door) refusal() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.holder.taken()
}

// taken says who has the target and since when.
func (h *holder) taken() error {
	if h == nil {
		return fmt.Errorf("%sother requests", workload.TakenPrefix)
	}
	return fmt.Errorf("%s%v since %s (%s): %s", workload.TakenPrefix, h.from, h.since.Format(time.TimeOnly),
		time.Since(h.since).Round(time.Second), h.ask.Spec.Title())
}

// next waits for the request of that index of the row that first begins, until the deadline. Others are refused.
func (d *door) next(ctx context.Context, first workload.Ask, index int, deadline time.Time) (*dat.CR, error) {
	soon := time.NewTimer(time.Until(deadline))
	defer soon.Stop()
	for {
		select {
		case r := <-d.joins:
			if r.ask.Session == first.Session && r.ask.Index == index {
				return r.cr, nil
			}
			_ = workload.Refuse(r.cr, plan.ErrSpec.Error()) // it has given up meanwhile
		case <-soon.C:
			return nil, fmt.Errorf("connection %d of %d did not come", index+1, first.Spec.Connections)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
