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

// waiter is the part of an EVD for the goroutine inside Wait.
type waiter struct {
	held  atomic.Uint32 // heldByNone, heldByWaiter or heldByResize
	armed atomic.Bool   // the waiter sleeps or is about to: notifications raise wake
	goal  atomic.Int32  // threshold of the waiter, in events
	mark  atomic.Uint32 // value of EVD.noticed when the waiter began to wait
	wake  progress.Signal

	unwaitable atomic.Bool
	cancels    atomic.Uint32 // counts the calls that ended the waiting of a waiter
	entered    uint32        // value of cancels when the waiter called Wait
}

// Values of waiter.held. A waiter and a resize exclude each other.
const (
	heldByNone = iota
	heldByWaiter
	heldByResize
)

// Wait waits until at least threshold events are queued, then takes the first (dat_evd_wait). A negative timeout
// waits for ever, zero does not wait. more is the number of events that remain queued. ErrTimeoutExpired takes no
// event; more is then the number of queued events.
//
// If threshold events are queued when Wait is called, it returns immediately. Otherwise only a notification ends the
// wait. Two kinds of completions are no notifications: those of posts with CompletionUnsignalled, and on endpoints
// with CompletionSolicitedWait those of receives that the peer did not solicit. While it waits, Wait drives the
// adapter's engines. After some tens of microseconds without any packet it sleeps.
//
// Errors: ErrTimeoutExpired; ErrAbort (the adapter was closed during the wait); ErrInvalidParameter (threshold below
// 1 or above QLen, ev is nil); ErrInvalidState (another goroutine is inside Wait, the dispatcher is or becomes
// unwaitable, or threshold is not 1 although the streams have CompletionUnsignalled or CompletionSolicitedWait).
func (e *EVD) Wait(timeout time.Duration, threshold int, ev *Event) (more int, err error) {
	if err := e.usable(); err != nil {
		return 0, err
	}
	return e.wait(progress.Until(timeout), nil, threshold, ev)
}

// WaitContext is Wait until a context is done. It then returns the context's error, wrapped with ErrInterruptedCall.
// It takes no event; more is the number of queued events.
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

// interrupted adds the context's error to ErrInterruptedCall. It returns any other err unchanged.
func interrupted(ctx context.Context, err error) error {
	if err == ErrInterruptedCall {
		return fmt.Errorf("dat: %w: %w", err, ctx.Err())
	}
	return err
}

// Events returns an iterator that takes events one after the other and waits for each. It ends when the context is
// done, the dispatcher ends, or the dispatcher has overflowed. The last pair is nil and the error: that of
// WaitContext, or ErrQueueFull after an overflow. The Event that the iterator yields is valid until the next
// iteration.
//
// After an overflow the consumer would wait for events that are lost, so the iterator ends. EventAsyncEVDOverflow
// reports the overflow too. A dispatcher that has been emptied since counts as not overflowed.
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

// wait is Wait with a limit in engine time. It also ends when done is closed.
func (e *EVD) wait(limit wire.Time, done <-chan struct{}, threshold int, ev *Event) (more int, err error) {
	if ev == nil {
		return 0, fail(ErrInvalidParameter, "no event to fill")
	}
	if err := e.checkThreshold(threshold); err != nil {
		return 0, err
	}
	if !e.beginWait() {
		return 0, ErrInvalidState
	}
	if err = e.mayWait(threshold); err == nil {
		err = e.next(limit, done, threshold, ev)
	}
	return e.endWait(), err
}

func (e *EVD) checkThreshold(threshold int) error {
	if threshold < 1 || threshold > e.QLen() {
		return fail(ErrInvalidParameter, "threshold %d; it may be 1 to %d", threshold, e.QLen())
	}
	return nil
}

// beginWait makes the caller the waiter. It returns false if there is one already. If a resize holds the dispatcher, it
// waits for the end of the resize, which is short.
func (e *EVD) beginWait() bool {
	for !e.held.CompareAndSwap(heldByNone, heldByWaiter) {
		if e.held.Load() == heldByWaiter {
			return false
		}
		runtime.Gosched()
	}
	e.entered = e.cancels.Load()
	return true
}

// endWait ends the waiting and returns the number of queued events. While held is heldByWaiter, events do not trigger
// the CNO. So endWait triggers it if an event was queued after the count: the caller of Wait does not know of that
// event.
func (e *EVD) endWait() (more int) {
	notice := e.noticed()
	more = e.Len()
	e.held.Store(heldByNone)
	if e.noticed() != notice {
		e.trigger()
	}
	return more
}

// mayWait checks the conditions of Wait that cannot change while the caller is the waiter.
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
	return e.checkThreshold(threshold) // again: a resize may have come before beginWait
}

// next waits until threshold events are queued and takes the first.
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
		case e.cancels.Load() != e.entered:
			return ErrInvalidState
		case e.pop(ev):
			return nil
		} // else a Dequeue that began before this call took the event: wait again
	}
}

// waiting is the EVD as a progress.Waiting.
type waiting EVD

// Ready implements progress.Waiting.
func (w *waiting) Ready() bool {
	e := (*EVD)(w)
	return e.met() || e.state.Load() != 0 || e.cancels.Load() != e.entered
}

// Arm implements progress.Waiting.
func (w *waiting) Arm(on bool) {
	e := (*EVD)(w)
	e.armed.Store(on)
	e.listen()
}

// Signal implements progress.Waiting.
func (w *waiting) Signal() progress.Signal { return w.wake }

// met reports whether the waiter's condition holds: enough events are queued, and at least one of those that arrived
// during the wait is a notification.
func (e *EVD) met() bool {
	return e.Len() >= int(e.goal.Load()) && e.noticed() != e.mark.Load()
}

// noticed returns a count of the notifications. It wraps around.
func (e *EVD) noticed() uint32 {
	n := e.slowNotice.Load()
	for _, q := range e.queues {
		n += q.Notice()
	}
	return n
}

// SetUnwaitable makes the dispatcher unwaitable (dat_evd_set_unwaitable): a current Wait returns ErrInvalidState, and
// so do later ones. Events still arrive and trigger the CNO, and Dequeue takes them.
func (e *EVD) SetUnwaitable() error {
	if err := e.usable(); err != nil {
		return err
	}
	if !e.unwaitable.Swap(true) {
		e.cancels.Add(1)
		e.wake.Raise()
	}
	return nil
}

// ClearUnwaitable makes the dispatcher waitable again (dat_evd_clear_unwaitable).
func (e *EVD) ClearUnwaitable() error {
	if err := e.usable(); err != nil {
		return err
	}
	e.unwaitable.Store(false)
	return nil
}
