package dat

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/wire"
)

// waiter is the part of an EVD that belongs to the goroutine inside Wait.
type waiter struct {
	held  atomic.Uint32 // heldBy
	armed atomic.Bool   // the waiter is asleep, or about to be
	goal  atomic.Int32  // events that it waits for
	mark  atomic.Uint32 // EVD.noticed when it came
	wake  progress.Signal

	unwaitable atomic.Bool
	ousted     atomic.Uint32 // counts the calls that sent a waiter away
	came       uint32        // ousted when the waiter came
}

// Who has a dispatcher for itself.
const (
	heldByNone = iota
	heldByWaiter
	heldByResize
)

// Wait takes the first event out, waiting until at least threshold events are there
// (dat_evd_wait). A negative timeout waits for ever, zero does not wait. more is the number of
// events left; after ErrTimeoutExpired, which takes nothing, the number that is there.
//
// If fewer are there when it is called, only a notification ends the waiting: not a completion of a post
// with CompletionUnsignalled, nor a receive that the peer did not solicit on an endpoint with
// CompletionSolicitedWait. While it waits it drives the adapter's engines; after some tens of
// microseconds without any event it sleeps.
//
// Errors: ErrInvalidParameter (threshold below 1 or above QLen, no event to fill), ErrInvalidState
// (another goroutine waits; the dispatcher is or becomes unwaitable; a threshold other than 1 while fed
// by streams with CompletionUnsignalled or CompletionSolicitedWait), ErrTimeoutExpired, ErrAbort (the
// adapter was closed meanwhile).
func (e *EVD) Wait(timeout time.Duration, threshold int, ev *Event) (more int, err error) {
	if err := e.usable(); err != nil {
		return 0, err
	}
	return e.wait(progress.Until(timeout), nil, threshold, ev)
}

// WaitContext is Wait until a context is done. It returns the context's error then, wrapped with
// ErrInterruptedCall, takes nothing, and more is the number of events that is there.
func (e *EVD) WaitContext(ctx context.Context, threshold int, ev *Event) (more int, err error) {
	if err := e.usable(); err != nil {
		return 0, err
	}
	if ctx == nil {
		return 0, fail(ErrInvalidParameter, "no context; use context.Background to wait for ever")
	}
	more, err = e.wait(progress.Forever, ctx.Done(), threshold, ev)
	return more, interrupted(ctx, err)
}

// interrupted adds to ErrInterruptedCall why a context was done.
func interrupted(ctx context.Context, err error) error {
	if err == ErrInterruptedCall {
		return fmt.Errorf("dat: %w: %w", err, ctx.Err())
	}
	return err
}

// Events takes events out one after the other, waiting for each, until the context is done or the
// dispatcher ends; the last pair has the error of WaitContext and no event. An event is valid until the
// next one.
//
// On a dispatcher that has overflowed, and has not been emptied since, it ends with ErrQueueFull: the consumer would wait for
// events that are lost. EventAsyncEVDOverflow tells of them too.
//
//	for ev, err := range evd.Events(ctx) {
func (e *EVD) Events(ctx context.Context) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		var ev Event
		for {
			if e.lost.Load() {
				yield(nil, fail(ErrQueueFull, "the event dispatcher for %d events has overflowed, and events are lost; make it longer", e.QLen()))
				return
			}
			if _, err := e.WaitContext(ctx, 1, &ev); err != nil {
				yield(nil, err)
				return
			}
			if !yield(&ev, nil) {
				return
			}
		}
	}
}

// wait is Wait until a limit or until done is closed.
func (e *EVD) wait(limit wire.Time, done <-chan struct{}, threshold int, ev *Event) (more int, err error) {
	if ev == nil {
		return 0, fail(ErrInvalidParameter, "no event to fill")
	}
	if err := e.checkThreshold(threshold); err != nil {
		return 0, err
	}
	if !e.hold() {
		return 0, ErrInvalidState
	}
	if err = e.mayWait(threshold); err == nil {
		err = e.next(limit, done, threshold, ev)
	}
	return e.letGo(), err
}

func (e *EVD) checkThreshold(threshold int) error {
	if threshold < 1 || threshold > e.QLen() {
		return fail(ErrInvalidParameter, "threshold %d; it may be 1 to %d", threshold, e.QLen())
	}
	return nil
}

// hold makes the caller the waiter; false if another is. A resize does not take long.
func (e *EVD) hold() bool {
	for !e.held.CompareAndSwap(heldByNone, heldByWaiter) {
		if e.held.Load() == heldByWaiter {
			return false
		}
		runtime.Gosched()
	}
	e.came = e.ousted.Load()
	return true
}

// letGo ends the waiting and returns how many events are there. Of an event that came too late to be
// counted the waiter does not know, and the CNO was not triggered because of it: it is now.
func (e *EVD) letGo() (more int) {
	notice := e.noticed()
	more = e.Len()
	e.held.Store(heldByNone)
	if e.noticed() != notice {
		e.trigger()
	}
	return more
}

// mayWait checks what the waiter can rely on while it holds the dispatcher.
func (e *EVD) mayWait(threshold int) error {
	if e.unwaitable.Load() {
		return ErrInvalidState
	}
	if threshold == 1 {
		return nil
	}
	if EVDState(e.config.Load()) != EVDStateConfigThreshold {
		return fail(ErrInvalidState, "threshold %d on an event dispatcher with unsignalled or solicited streams; it has to be 1", threshold)
	}
	return e.checkThreshold(threshold) // a resize may have come between
}

// next takes the first event out when threshold events are there.
func (e *EVD) next(limit wire.Time, done <-chan struct{}, threshold int, ev *Event) error {
	for {
		e.goal.Store(int32(threshold))
		e.mark.Store(e.noticed())
		if e.Len() < threshold {
			if err := e.ia.a.park((*waiting)(e), limit, done); err != nil {
				return err
			}
		}
		switch {
		case e.state.Load() != 0:
			return ErrAbort
		case e.ousted.Load() != e.came:
			return ErrInvalidState
		case e.pop(ev):
			return nil
		} // else a Dequeue that began before this call took it
	}
}

// waiting is an EVD as the progress engine sees it.
type waiting EVD

// Ready implements progress.Waiting.
func (w *waiting) Ready() bool {
	e := (*EVD)(w)
	return e.met() || e.state.Load() != 0 || e.ousted.Load() != e.came
}

// Arm implements progress.Waiting.
func (w *waiting) Arm(on bool) {
	e := (*EVD)(w)
	e.armed.Store(on)
	e.listen()
}

// Signal implements progress.Waiting.
func (w *waiting) Signal() progress.Signal { return w.wake }

// met reports that the waiter has what it waits for: enough events, and one of those that came
// meanwhile is a notification.
func (e *EVD) met() bool {
	return e.Len() >= int(e.goal.Load()) && e.noticed() != e.mark.Load()
}

// noticed changes with every notification.
func (e *EVD) noticed() uint32 {
	n := e.slowNotice.Load()
	for _, q := range e.queues {
		n += q.Notice()
	}
	return n
}

// SetUnwaitable sends a waiter away with ErrInvalidState and refuses others (dat_evd_set_unwaitable).
// Events go on arriving and triggering the CNO, and Dequeue takes them.
func (e *EVD) SetUnwaitable() error {
	if err := e.usable(); err != nil {
		return err
	}
	if !e.unwaitable.Swap(true) {
		e.ousted.Add(1)
		e.wake.Raise()
	}
	return nil
}

// ClearUnwaitable allows waiting again (dat_evd_clear_unwaitable).
func (e *EVD) ClearUnwaitable() error {
	if err := e.usable(); err != nil {
		return err
	}
	e.unwaitable.Store(false)
	return nil
}
