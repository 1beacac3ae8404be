package ends

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/dat"
)

// request is a connection request that passed all checks.
type request struct {
	cr   *dat.CR
	from netip.Addr
	ask  workload.Ask
}

// arbiter decides which connection requests a target accepts. A job is one run of datbench, which measures one row
// after the other. The target serves one row at a time, and stays reserved for the next rows of the same job. The
// arbiter refuses a request for a row immediately in three cases:
//
//   - Another job has the target, and will not release it soon. The refusal names that job's address and row.
//   - The maximum number of requests (maxWaiting) already wait for the target.
//   - The last row from the requester's address failed a short time ago. Clients of other addresses come first.
//
// One goroutine calls the method enter; another goroutine calls all other methods.
type arbiter struct {
	mu sync.Mutex
	// holder is the job that has the target; nil if none has.
	holder *holder
	// A row may have several connections, and each connection has its own request. The field waiting has the requests
	// for the first connection of each row.
	waiting []request
	// The method enter appends a request to the field waiting, and then sends to the channel came, which wakes the
	// method take. The channel joins has the requests for the other connections of the holder's row.
	came  chan struct{}
	joins chan request
	// The map late has the addresses whose rows failed.
	late penalties
}

// holder is the job that the target is reserved for.
type holder struct {
	request
	since time.Time
	// The field over is set when the current row has been measured. After the last row of the job the target will be
	// free soon, so the arbiter then queues requests of other jobs instead of refusing them.
	over bool
}

// maxWaiting limits the requests that wait for the end of a row.
const maxWaiting = 16

func newArbiter() *arbiter {
	return &arbiter{came: make(chan struct{}, 1), joins: make(chan request, plan.MaxConnections), late: penalties{}}
}

// enter queues a request, or returns the reason for its refusal.
func (d *arbiter) enter(r request) (refusal error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.holder
	switch {
	case r.ask.Index > 0:
		return d.join(r)
	case h != nil && !h.same(r) && !(h.over && !h.ask.Spec.More), len(d.waiting) >= maxWaiting:
		return h.taken()
	}
	if err := d.heldBack(r.from); err != nil {
		return err
	}
	d.waiting = append(d.waiting, r)
	d.notify()
	return nil
}

// join queues a further connection of the holder's row.
func (d *arbiter) join(r request) error {
	h := d.holder
	if h == nil || !h.same(r) || h.ask.Session != r.ask.Session || len(d.joins) == cap(d.joins) {
		return fmt.Errorf("connection %d is of a row that is not being measured: run it again", r.ask.Index+1)
	}
	d.joins <- r
	return nil
}

func (d *arbiter) notify() {
	select {
	case d.came <- struct{}{}:
	default:
	}
}

// same reports whether a request belongs to the holder's job.
func (h *holder) same(r request) bool { return h.from == r.from && h.ask.Job == r.ask.Job }

// The method take waits for the first request for a row, and returns it as r. The job of r becomes the holder of the
// target. All other requests of the field waiting are returned in the slice refused; the caller must refuse them.
// Between two rows of a job, the target stays reserved for that job for at most jobGap. If the context is done, ok is
// false.
func (d *arbiter) take(ctx context.Context) (r request, refused []request, ok bool) {
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

// pop makes the first waiting request the holder.
func (d *arbiter) pop() (r request, refused []request, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		return r, nil, false
	}
	r, refused, d.waiting = d.waiting[0], d.waiting[1:], nil
	next := &holder{request: r, since: time.Now()}
	if h := d.holder; h != nil && h.same(r) {
		next.since = h.since
	}
	d.holder = next
	for len(d.joins) > 0 {
		<-d.joins // left over from a row that has failed
	}
	return r, refused, true
}

// The method over records that the holder's row is measured.
func (d *arbiter) over() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holder.over = true
}

// The method leave ends the holder's row. If more is true, the job has another row and keeps the target.
func (d *arbiter) leave(more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !more {
		d.holder = nil
	}
}

// served forgets the penalty of an address whose row was served.
func (d *arbiter) served(from netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late.clear(from)
}

// The method called failed records the failure of a client's row, and begins a penalty for the client's address. It
// must be called before the target is free again. It removes the client's requests from the field waiting and returns
// them. The caller must refuse them with the returned reason.
func (d *arbiter) failed(from netip.Addr) (refused []request, reason error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late.add(from, time.Now())
	d.waiting = slices.DeleteFunc(d.waiting, func(r request) bool {
		if r.from == from {
			refused = append(refused, r)
		}
		return r.from == from
	})
	return refused, d.heldBack(from)
}

// heldBack returns an error while an address has a penalty.
func (d *arbiter) heldBack(from netip.Addr) error {
	left := d.late.left(from, time.Now())
	if left <= 0 {
		return nil
	}
	return fmt.Errorf("%s%s: the last row of %v failed", workload.KeptPrefix, left.Round(time.Millisecond), from)
}

// refusal returns an error that names the current holder.
func (d *arbiter) refusal() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.holder.taken()
}

// taken returns an error that says which client has the target, and since when.
func (h *holder) taken() error {
	if h == nil {
		return fmt.Errorf("%sother requests", workload.TakenPrefix)
	}
	return fmt.Errorf("%s%v since %s (%s): %s", workload.TakenPrefix, h.from, h.since.Format(time.TimeOnly),
		time.Since(h.since).Round(time.Second), h.ask.Spec.Title())
}

// The method next waits for the request for one connection of a row, and returns this request. The argument ask is the
// row's first request. The argument index is the number of the connection in the row. If a request for another
// connection arrives, the method refuses it. At the deadline the method gives up and returns an error.
func (d *arbiter) next(ctx context.Context, ask workload.Ask, index int, deadline time.Time) (*dat.CR, error) {
	soon := time.NewTimer(time.Until(deadline))
	defer soon.Stop()
	for {
		select {
		case r := <-d.joins:
			if r.ask.Session == ask.Session && r.ask.Index == index {
				return r.cr, nil
			}
			_ = workload.Refuse(r.cr, plan.ErrSpec.Error()) // fails if the requester has given up
		case <-soon.C:
			return nil, fmt.Errorf("connection %d of %d did not come", index+1, ask.Spec.Connections)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
