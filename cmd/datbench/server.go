package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// datTarget serves initiators one after another. One goroutine answers their requests, asleep until one comes, another
// measures.
type datTarget struct {
	a    *adapter
	crs  *dat.EVD
	psp  *dat.PSP
	cpus cpuList
	// realtime is whether serve measures at real-time priority.
	realtime bool

	// stop has serve end, which ends served; then err may be read.
	stop   context.CancelFunc
	served context.Context
	wg     sync.WaitGroup
	door   *door
	// most is what one row may take.
	most allowance
	// refusals keeps those who are refused from filling the log.
	refusals sampler
	// log, if not nil, says what it does, and which rows failed.
	log func(format string, args ...any)
	// mu guards err, which is what ended serve, and rowErr, the first row that failed and was not logged.
	mu          sync.Mutex
	err, rowErr error
}

func newDATTarget(h *host, s station) (target, error) {
	return openTarget(context.Background(), h, s, fullAllowance, nil)
}

func openTarget(ctx context.Context, h *host, s station, most allowance, log func(string, ...any)) (t *datTarget, err error) {
	t = &datTarget{log: log, stop: func() {}, cpus: s.CPUs, realtime: s.Realtime, most: most, door: newDoor()}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
			t = nil
		}
	}()
	if t.a, err = openAdapter(h, s); err != nil {
		return t, err
	}
	if t.crs, err = t.a.ia.CreateEVD(backlog, nil, dat.EVDCR); err != nil {
		return t, err
	}
	if t.psp, err = t.a.ia.CreatePSP(qualifier, t.crs, dat.PSPConsumer); err != nil {
		return t, err
	}
	t.served, t.stop = context.WithCancel(ctx)
	for _, part := range []func(context.Context) error{t.answer, t.serve} {
		t.wg.Go(func() { t.end(part(t.served)) })
	}
	return t, nil
}

// end ends both parts with one of them.
func (t *datTarget) end(err error) {
	t.mu.Lock()
	t.err = errors.Join(t.err, err)
	t.mu.Unlock()
	t.stop()
}

// backlog is connection requests that wait for an answer, which they get at once.
const backlog = 64

// answer tells everybody who asks at once whether the target takes the request.
func (t *datTarget) answer(ctx context.Context) error {
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

// admit has a request wait for its turn, or refuses it.
func (t *datTarget) admit(cr *dat.CR) {
	peer, err := cr.Query()
	if err != nil {
		return // it was withdrawn
	}
	r := request{cr: cr, from: peer.RemoteAddress}
	if r.ask, err = decodeAsk(peer.PrivateData); err == nil {
		err = t.most.permits(r.ask.row)
	}
	if err != nil {
		if t.refusals.allow(time.Now()) {
			t.fail("%v: refused: %w%s", r.from, err, t.refusals.note())
		}
	} else {
		err = t.door.enter(r)
	}
	if err != nil {
		_ = refuse(cr, err.Error()) // it has given up meanwhile
	}
}

// serve serves each request that is taken to its end.
func (t *datTarget) serve(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	release, err := pin(t.cpus)
	if err != nil {
		return err
	}
	defer release()
	for {
		r, refused, ok := t.door.take(ctx)
		if !ok {
			return nil
		}
		for _, other := range refused {
			_ = refuse(other.cr, t.door.refusal().Error()) // it has given up meanwhile
		}
		t.door.leave(t.serveOne(ctx, r) && r.ask.row.More)
	}
}

// fail logs or notes a row that failed; those that follow follow from the first.
func (t *datTarget) fail(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch err := fmt.Errorf(format, args...); {
	case t.log != nil:
		t.log("%s", result.OneLine(err.Error()))
	case t.rowErr == nil:
		t.rowErr = err
	}
}

// serveOne is whether the row was served to its end.
func (t *datTarget) serveOne(ctx context.Context, r request) bool {
	row := r.ask.row
	start := time.Now()
	p := &passive{adapter: t.a, cr: r.cr, asked: r.ask, from: r.from, realtime: t.realtime, over: t.door.over,
		next: func(ctx context.Context, index int, deadline time.Time) (*dat.CR, error) {
			return t.door.next(ctx, r.ask, index, deadline)
		}}
	tally, err := p.serve(ctx)
	if err != nil {
		t.fail("%v: %s: %w", r.from, row.Title(), err)
		return false
	}
	if t.log != nil {
		t.log("%v: %s, depth %d: served in %.1f s; %d resent, %d dropped here", r.from, row.Title(), row.depth(),
			time.Since(start).Seconds(), tally.retransmits, tally.drops)
	}
	return true
}

// close ends what serves and says what went wrong and was not logged.
func (t *datTarget) close() error {
	t.stop()
	t.wg.Wait()
	errs := []error{t.err, t.rowErr}
	if t.psp != nil {
		errs = append(errs, t.psp.Free())
	}
	if t.crs != nil {
		errs = append(errs, t.crs.Free())
	}
	if t.a != nil {
		errs = append(errs, t.a.close())
	}
	return errors.Join(errs...)
}
