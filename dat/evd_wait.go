package dat

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/internal/park"
	"github.com/datxdp/datxdp/wire"
)

// waiter is the part of an EVD for the goroutine inside Wait.
type waiter struct {
	userState    atomic.Uint32 // heldByNone, heldByWaiter or heldByResize
	armed        atomic.Bool   // the waiter sleeps or is about to sleep, so notifications raise the signal wake
	threshold    atomic.Int32  // threshold of the waiter, in events
	startNotices atomic.Uint32 // value of EVD.numNotices when the waiter began to wait
	wake         progress.Signal

	unwaitable   atomic.Bool
	numCancels   atomic.Uint32 // counts the calls of SetUnwaitable, each of which ends a wait
	startCancels uint32        // value of numCancels when the waiter called Wait
}

// Values of waiter.userState. A waiter and a resize exclude each other.
const (
	heldByNone = iota
	heldByWaiter
	heldByResize
)

// Wait waits until at least threshold events are queued, and then takes the first event (dat_evd_wait). With a negative
// timeout, Wait waits for ever; with a zero timeout, it does not wait. The result more is the number of events that
// remain queued. If Wait returns ErrTimeoutExpired, it has taken no event.
//
// If threshold events are queued when Wait is called, Wait returns immediately. Otherwise Wait returns when both of
// these conditions hold: threshold events are queued, and at least one event that arrived during the wait is a
// notification. All events are notifications, except two kinds of successful completions:
//
//   - completions of operations posted with CompletionUnsignalled;
//   - completions of receives, on endpoints whose attribute is CompletionSolicitedWait, if the peer sent the message
//     without the flag CompletionSolicitedWait.
//
// Wait polls the adapter's engines while it waits, and sleeps after some tens of microseconds without a packet.
//
// Errors:
//
//   - ErrTimeoutExpired.
//   - ErrAbort: the IA was closed during the wait.
//   - ErrInvalidParameter: threshold is below 1 or above QLen, or ev is nil.
//   - ErrInvalidState: another goroutine is inside Wait; or the dispatcher is unwaitable or becomes unwaitable; or
//     threshold is above 1, and the dispatcher gets completions to which an endpoint applies the attribute
//     CompletionUnsignalled or CompletionSolicitedWait.
func (e *EVD) Wait(timeout time.Duration, threshold int, ev *Event) (more int, err error) {
	if err := e.usable(); err != nil {
		return 0, err
	}
	return e.waitUntil(progress.Until(timeout), nil, threshold, ev)
}

// WaitContext is Wait without a timeout. When ctx is done, WaitContext takes no event and returns an error that wraps
// both ErrInterruptedCall and the error of ctx. In that case, the result more is the number of queued events.
func (e *EVD) WaitContext(ctx context.Context, threshold int, ev *Event) (more int, err error) {
	if err := e.usable(); err != nil {
		return 0, err
	}
	if ctx == nil {
		return 0, fail(ErrInvalidParameter, "the context is nil; use context.Background to wait for ever")
	}
	more, err = e.waitUntil(progress.Forever, ctx.Done(), threshold, ev)
	return more, wrapInterrupted(ctx, err)
}

// wrapInterrupted adds the error of ctx to err if err is ErrInterruptedCall. It returns other errors unchanged.
func wrapInterrupted(ctx context.Context, err error) error {
	if err == ErrInterruptedCall {
		return fmt.Errorf("dat: %w: %w", err, ctx.Err())
	}
	return err
}

// Events returns an iterator that waits for each event with WaitContext and yields the event. An event is valid until
// the next iteration. If WaitContext fails, or the dispatcher has overflowed, the iterator yields a nil event with an
// error and ends.
//
// After an overflow the error is ErrQueueFull, so that the consumer does not wait for events that are lost. The
// consumer should then empty the dispatcher with Dequeue or Wait; after that, Events works again. EventAsyncEVDOverflow
// reports the overflow too.
//
//	for ev, err := range evd.Events(ctx) {
//		if err != nil {
//			return err
//		}
//		handle(ev)
//	}
func (e *EVD) Events(ctx context.Context) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		var ev Event
		for {
			if e.overflowReported.Load() {
				yield(nil, fail(ErrQueueFull, "the event dispatcher, with a queue length of %d, has overflowed and lost events; make the queue longer", e.QLen()))
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

// waitUntil is Wait with a time limit instead of a timeout. When doneCh is closed, it returns ErrInterruptedCall.
func (e *EVD) waitUntil(limit wire.Time, doneCh <-chan struct{}, threshold int, ev *Event) (more int, err error) {
	if ev == nil {
		return 0, fail(ErrInvalidParameter, "the event is nil")
	}
	if err := e.checkThreshold(threshold); err != nil {
		return 0, err
	}
	if !e.beginWait() {
		return 0, ErrInvalidState
	}
	if err = e.mayWait(threshold); err == nil {
		err = e.waitAndTake(limit, doneCh, threshold, ev)
	}
	return e.endWait(), err
}

func (e *EVD) checkThreshold(threshold int) error {
	if threshold < 1 || threshold > e.QLen() {
		return fail(ErrInvalidParameter, "threshold %d; it may be 1 to %d", threshold, e.QLen())
	}
	return nil
}

// beginWait makes the calling goroutine the waiter. It returns false if another goroutine is the waiter. If a Resize is
// in progress, beginWait first busy-waits for its end.
func (e *EVD) beginWait() bool {
	var p park.Patience
	for !e.userState.CompareAndSwap(heldByNone, heldByWaiter) {
		if e.userState.Load() == heldByWaiter {
			return false
		}
		p.Wait()
	}
	e.startCancels = e.numCancels.Load()
	return true
}

// endWait ends the wait and returns the number of queued events. While a goroutine waits, notifications do not trigger
// the CNO. So if a notification arrives after endWait has counted the events, endWait triggers the CNO. Otherwise
// neither the caller of Wait nor the CNO would learn of that event.
func (e *EVD) endWait() (more int) {
	notice := e.numNotices()
	more = e.Len()
	e.userState.Store(heldByNone)
	if e.numNotices() != notice {
		e.triggerCNO()
	}
	return more
}

// mayWait checks the conditions of Wait that beginWait does not check. The caller is the waiter.
func (e *EVD) mayWait(threshold int) error {
	if e.unwaitable.Load() {
		return ErrInvalidState
	}
	if threshold == 1 {
		return nil
	}
	if EVDState(e.config.Load()) != EVDStateConfigThreshold {
		return fail(ErrInvalidState, "threshold %d on an event dispatcher with unsignalled or solicited streams; it must be 1", threshold)
	}
	return e.checkThreshold(threshold) // again, because a Resize may have run since the first check
}

// waitAndTake waits until threshold events are queued, and takes the first event.
func (e *EVD) waitAndTake(limit wire.Time, doneCh <-chan struct{}, threshold int, ev *Event) error {
	for {
		e.threshold.Store(int32(threshold))
		e.startNotices.Store(e.numNotices())
		if e.Len() < threshold {
			if err := e.ia.a.waitReady((*waiting)(e), limit, doneCh); err != nil {
				return err
			}
		}
		switch {
		case e.state.Load() != 0:
			return ErrAbort
		case e.numCancels.Load() != e.startCancels:
			return ErrInvalidState
		case e.dequeue(ev):
			return nil
		} // here a Dequeue that began before this call has taken the event: wait again
	}
}

// waiting implements progress.Waiting for the waiter of an EVD.
type waiting EVD

// Ready implements progress.Waiting.
func (w *waiting) Ready() bool {
	e := (*EVD)(w)
	return e.mayReturn() || e.state.Load() != 0 || e.numCancels.Load() != e.startCancels
}

// Arm implements progress.Waiting.
func (w *waiting) Arm(on bool) {
	e := (*EVD)(w)
	e.armed.Store(on)
	e.updateListening()
}

// Signal implements progress.Waiting.
func (w *waiting) Signal() progress.Signal { return w.wake }

// mayReturn reports whether the waiter may return. Two things are needed: the number of queued events is at least the
// waiter's threshold, and at least one notification has arrived during the wait.
func (e *EVD) mayReturn() bool {
	return e.Len() >= int(e.threshold.Load()) && e.numNotices() != e.startNotices.Load()
}

// numNotices returns the number of notifications so far. The number wraps around.
func (e *EVD) numNotices() uint32 {
	n := e.numSlowNotices.Load()
	for _, q := range e.queues {
		n += q.Notice()
	}
	return n
}

// SetUnwaitable makes the dispatcher unwaitable (dat_evd_set_unwaitable): a Wait in progress and later calls of Wait
// return ErrInvalidState. Events still arrive and still trigger the CNO. The consumer takes these events with Dequeue.
func (e *EVD) SetUnwaitable() error {
	if err := e.usable(); err != nil {
		return err
	}
	if !e.unwaitable.Swap(true) {
		e.numCancels.Add(1)
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
