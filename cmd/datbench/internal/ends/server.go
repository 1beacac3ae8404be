package ends

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// DATTarget serves the rows of DAT initiators, one after the other. One goroutine waits for connection requests, and
// queues or refuses each of them. Another goroutine measures the rows.
type DATTarget struct {
	Adapter *workload.Adapter
	crs     *dat.EVD
	psp     *dat.PSP
	cpus    plan.CPUList
	// If realtime is set, serve runs at real-time priority while it measures.
	realtime bool

	// stop ends serve. The context Served is done when serve has ended; err may be read then.
	stop    context.CancelFunc
	Served  context.Context
	wg      sync.WaitGroup
	arbiter *arbiter
	// allowance limits the memory and the busy loops for one row.
	allowance Allowance
	// startLoops starts busy loops: see workload.Host. It is never nil.
	startLoops func(n int) (stop func(), err error)
	// refusals keeps refused clients from flooding the log.
	refusals sampler
	// log, if not nil, reports the rows served and the rows that failed.
	log func(format string, args ...any)
	// mu guards err and rowErr. The field err joins the errors that ended answer() and serve(). If log is nil,
	// rowErr is the error of the first row that failed. Otherwise rowErr is nil, because every error of a row is
	// logged.
	mu          sync.Mutex
	err, rowErr error
}

func newDATTarget(h *workload.Host, s plan.Station) (Target, error) {
	return OpenDAT(context.Background(), h, s, FullAllowance, nil)
}

func OpenDAT(ctx context.Context, h *workload.Host, s plan.Station, most Allowance, log func(string, ...any)) (t *DATTarget, err error) {
	t = &DATTarget{log: log, stop: func() {}, cpus: s.CPUs, realtime: s.Realtime, allowance: most, arbiter: newArbiter(), startLoops: h.StartLoops}
	if t.startLoops == nil {
		t.startLoops = func(int) (func(), error) { return func() {}, nil }
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
			t = nil
		}
	}()
	if t.Adapter, err = workload.OpenAdapter(h, s); err != nil {
		return t, err
	}
	if t.crs, err = t.Adapter.IA.CreateEVD(backlog, nil, dat.EVDCR); err != nil {
		return t, err
	}
	if t.psp, err = t.Adapter.IA.CreatePSP(workload.QualifierOf(s), t.crs, dat.PSPConsumer); err != nil {
		return t, err
	}
	t.Served, t.stop = context.WithCancel(ctx)
	for _, part := range []func(context.Context) error{t.answer, t.serve} {
		t.wg.Go(func() { t.end(part(t.Served)) })
	}
	return t, nil
}

// end stops both goroutines because of an error in one of them.
func (t *DATTarget) end(err error) {
	t.mu.Lock()
	t.err = errors.Join(t.err, err)
	t.mu.Unlock()
	t.stop()
}

// backlog is the number of connection requests that may wait in the PSP. A small number is enough, because
// DATTarget.answer handles each request immediately.
const backlog = 64

// answer handles each connection request immediately: it queues or refuses the request.
func (t *DATTarget) answer(ctx context.Context) error {
	var ev dat.Event
	for {
		_, err := t.crs.WaitContext(ctx, 1, &ev)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("waiting for requests: %w", err)
		case ev.Number == dat.EventConnectionRequest:
			t.admit(ev.CR)
		}
	}
}

// admit queues a request, or refuses it with a reason.
func (t *DATTarget) admit(cr *dat.CR) {
	peer, err := cr.Query()
	if err != nil {
		return // the requester has withdrawn it
	}
	r := request{cr: cr, from: peer.RemoteAddress}
	if r.ask, err = workload.DecodeAsk(peer.PrivateData); err == nil {
		err = t.allowance.permits(r.ask.Spec)
	}
	if err != nil {
		if t.refusals.allow(time.Now()) {
			t.fail("%v: refused: %w%s", r.from, err, t.refusals.note())
		}
	} else {
		err = t.arbiter.admit(r)
	}
	if err != nil {
		_ = workload.Refuse(cr, err.Error()) // fails if the requester has given up
	}
}

// serve serves the queued requests one after the other.
func (t *DATTarget) serve(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	release, err := measure.Pin(t.cpus)
	if err != nil {
		return err
	}
	defer release()
	for {
		r, refused, ok := t.arbiter.awaitHolder(ctx)
		if !ok {
			return nil
		}
		for _, other := range refused {
			_ = workload.Refuse(other.cr, t.arbiter.refusal().Error()) // fails if the requester has given up
		}
		err := t.serveOne(ctx, r)
		t.settle(r.from, err)
		t.arbiter.endRow(err == nil && r.ask.Spec.More)
	}
}

// settle ends the penalty of a client whose row succeeded, and begins a penalty if the row failed. A client that
// disconnected is not penalised. Only the target of `datbench server` penalises clients; it is the one that has a log.
// Every other target has only one client: the command that made the target.
func (t *DATTarget) settle(from netip.Addr, err error) {
	switch {
	case t.log == nil:
	case err == nil:
		t.arbiter.served(from)
	case !errors.Is(err, workload.ErrGone):
		refused, reason := t.arbiter.recordFailure(from)
		for _, r := range refused {
			_ = workload.Refuse(r.cr, reason.Error()) // fails if the requester has given up
		}
	}
}

// fail logs a failed row. If log is nil, fail keeps the error of the first failed row, because this failure often
// causes the later ones.
func (t *DATTarget) fail(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch err := fmt.Errorf(format, args...); {
	case t.log != nil:
		t.log("%s", result.OneLine(err.Error()))
	case t.rowErr == nil:
		t.rowErr = err
	}
}

// serveOne serves a row to its end and logs the outcome.
func (t *DATTarget) serveOne(ctx context.Context, r request) error {
	row := r.ask.Spec
	start := time.Now()
	p := &workload.Passive{Adapter: t.Adapter, CR: r.cr, Ask: r.ask, From: r.from, Realtime: t.realtime, Over: t.arbiter.rowMeasured,
		Next: func(ctx context.Context, index int, deadline time.Time) (*dat.CR, error) {
			return t.arbiter.awaitConnection(ctx, r.ask, index, deadline)
		}}
	tally, err := t.serveBesideLoops(ctx, p)
	if err != nil {
		t.fail("%v: %s: %w", r.from, row.Title(), err)
		return err
	}
	if t.log != nil {
		t.log("%v: %s, depth %d: served in %.1f s; %d resent, %d dropped here", r.from, row.Title(), row.QueueDepth(),
			time.Since(start).Seconds(), tally.Retransmits, tally.Drops)
	}
	return nil
}

// serveBesideLoops serves a row beside the busy loops that it asks for.
func (t *DATTarget) serveBesideLoops(ctx context.Context, p *workload.Passive) (measure.Tally, error) {
	stop, err := t.startLoops(p.Ask.Spec.Busy)
	if err != nil {
		return measure.Tally{}, errors.Join(err, workload.Refuse(p.CR, err.Error()))
	}
	defer stop()
	return p.Serve(ctx)
}

// Close stops the target. It returns the errors that were not logged.
func (t *DATTarget) Close() error {
	t.stop()
	t.wg.Wait()
	errs := []error{t.err, t.rowErr}
	if t.psp != nil {
		errs = append(errs, t.psp.Free())
	}
	if t.crs != nil {
		errs = append(errs, t.crs.Free())
	}
	if t.Adapter != nil {
		errs = append(errs, t.Adapter.Close())
	}
	return errors.Join(errs...)
}
