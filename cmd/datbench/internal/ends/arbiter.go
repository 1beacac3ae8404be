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
// arbiter refuses a request for a row immediately in four cases:
//
//   - Another job has the target, and will not release it soon. The refusal names that job's address and row.
//   - The maximum number of requests (maxWaiting) already wait for the target.
//   - The last row from the requester's address failed a short time ago. Clients of other addresses come first.
//   - The requester's address has, or had last, the target, and a client of another address was refused a short time ago.
//
// One goroutine calls admit; another goroutine calls all other methods.
type arbiter struct {
	mu sync.Mutex
	// holder is the job that has the target; nil if no job has the target.
	holder *holder
	// A row may have several connections, and each connection has its own request. rowQueue has the requests for the
	// first connection of each row. joinRequests has the requests for the second and later connections of the current
	// row, which is the holder's.
	rowQueue []request
	// admit appends a request to rowQueue, and then sends to queueChanged, which wakes awaitHolder.
	queueChanged chan struct{}
	joinRequests chan request
	// penalties has the addresses whose rows failed.
	penalties penalties
	// last is the address that has, or had last, the target. refusedAt is when a request of another address was last
	// refused since then because the target was taken.
	last      netip.Addr
	refusedAt time.Time
}

// holder is the job that the target is reserved for.
type holder struct {
	request
	since time.Time
	// measured is set when the current row has been measured. If that row is also the last one of the job, the target
	// will be free soon, so the arbiter queues the requests of other jobs. Otherwise the arbiter refuses requests of
	// other jobs while this job has the target.
	measured bool
}

// maxWaiting limits the requests that wait for the end of a row.
const maxWaiting = 16

func newArbiter() *arbiter {
	return &arbiter{queueChanged: make(chan struct{}, 1), joinRequests: make(chan request, plan.MaxConnections), penalties: penalties{}}
}

// admit queues a request, or returns the reason for its refusal.
func (d *arbiter) admit(r request) (refusal error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.holder
	switch {
	case r.ask.Index > 0:
		return d.join(r)
	case h != nil && !h.same(r) && !(h.measured && !h.ask.Spec.More), len(d.rowQueue) >= maxWaiting:
		d.noteRefusal(r)
		return h.taken()
	}
	if err := d.heldBack(r.from); err != nil {
		return err
	}
	if h == nil || !h.same(r) {
		if err := d.mustYield(r.from); err != nil {
			return err
		}
	}
	d.rowQueue = append(d.rowQueue, r)
	d.notify()
	return nil
}

// noteRefusal notes that a client was refused because the target is taken.
func (d *arbiter) noteRefusal(r request) {
	if r.from != d.last {
		d.refusedAt = time.Now()
	}
}

// mustYield returns an error if the address has, or had last, the target, and a client of another address was refused a
// short time ago. That client makes an attempt every waitEvery. Without mustYield, an address that begins one job after
// the other keeps all other clients out.
func (d *arbiter) mustYield(from netip.Addr) error {
	left := yieldTime - time.Since(d.refusedAt)
	if from != d.last || left <= 0 {
		return nil
	}
	return fmt.Errorf("%s%s: another client is waiting", workload.KeptPrefix, left.Round(time.Millisecond))
}

// join queues a further connection of the holder's row.
func (d *arbiter) join(r request) error {
	h := d.holder
	if h == nil || !h.same(r) || h.ask.Session != r.ask.Session || len(d.joinRequests) == cap(d.joinRequests) {
		return fmt.Errorf("connection %d is of a row that is not being measured: run it again", r.ask.Index+1)
	}
	d.joinRequests <- r
	return nil
}

func (d *arbiter) notify() {
	select {
	case d.queueChanged <- struct{}{}:
	default:
	}
}

// same reports whether a request belongs to the holder's job.
func (h *holder) same(r request) bool { return h.from == r.from && h.ask.Job == r.ask.Job }

// awaitHolder waits until rowQueue has a request, and returns the first request as r. The job of r becomes the holder
// of the target. The slice refused has all other requests of rowQueue. The caller must refuse these requests, because
// the target will not be free soon. If the context is done, ok is false. Between two rows of a job, the target stays
// reserved for that job for at most jobGap. In this time, the method admit refuses requests of other jobs.
func (d *arbiter) awaitHolder(ctx context.Context) (r request, refused []request, ok bool) {
	gap := time.NewTimer(jobGap)
	defer gap.Stop()
	for {
		if r, refused, ok = d.pop(); ok {
			return r, refused, true
		}
		select {
		case <-ctx.Done():
			return r, nil, false
		case <-d.queueChanged:
		case <-gap.C:
			d.endRow(false)
		}
	}
}

// pop makes the first waiting request the holder.
func (d *arbiter) pop() (r request, refused []request, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.rowQueue) == 0 {
		return r, nil, false
	}
	r, refused, d.rowQueue = d.rowQueue[0], d.rowQueue[1:], nil
	next := &holder{request: r, since: time.Now()}
	if h := d.holder; h != nil && h.same(r) {
		next.since = h.since
	}
	d.holder, d.last, d.refusedAt = next, r.from, time.Time{}
	for _, other := range refused {
		d.noteRefusal(other)
	}
	for len(d.joinRequests) > 0 {
		<-d.joinRequests // left over from a row that has failed
	}
	return r, refused, true
}

// rowMeasured records that the holder's row has been measured.
func (d *arbiter) rowMeasured() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holder.measured = true
}

// endRow ends the holder's row. If more is true, the job has another row and keeps the target.
func (d *arbiter) endRow(more bool) {
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
	d.penalties.clear(from)
}

// recordFailure records the failure of a client's row, and begins a penalty for the client's address. It must be called
// before the target is free again. It removes the client's requests from rowQueue and returns them. The caller must
// refuse them with the returned reason.
func (d *arbiter) recordFailure(from netip.Addr) (refused []request, reason error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.penalties.add(from, time.Now())
	d.rowQueue = slices.DeleteFunc(d.rowQueue, func(r request) bool {
		if r.from == from {
			refused = append(refused, r)
		}
		return r.from == from
	})
	return refused, d.heldBack(from)
}

// heldBack returns an error while an address has a penalty.
func (d *arbiter) heldBack(from netip.Addr) error {
	left := d.penalties.left(from, time.Now())
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

// awaitConnection waits for the request for one connection of a row, and returns this request. ask is the row's first
// request, and index is the number of the connection in the row. If a request for another connection arrives,
// awaitConnection refuses it. At the deadline it gives up and returns an error.
func (d *arbiter) awaitConnection(ctx context.Context, ask workload.Ask, index int, deadline time.Time) (*dat.CR, error) {
	soon := time.NewTimer(time.Until(deadline))
	defer soon.Stop()
	for {
		select {
		case r := <-d.joinRequests:
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
