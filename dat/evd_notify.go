package dat

import (
	"sync"
	"sync/atomic"
)

// notifier is the part of an EVD that passes notifications on: to the waiter, else to the CNO.
type notifier struct {
	cno     atomic.Pointer[CNO] // written with IA.mu held
	enabled atomic.Bool

	listening sync.Mutex // makes listen one step
}

// notified is called after a notification has become visible, also by the owner of an engine. With a
// goroutine inside Wait the CNO is not triggered.
func (e *EVD) notified() {
	if e.held.Load() != heldByWaiter {
		e.trigger()
	} else if e.armed.Load() && e.met() {
		e.wake.Raise()
	}
}

// trigger triggers the CNO if there is one that is to hear of this dispatcher.
func (e *EVD) trigger() {
	if c := e.cno.Load(); c != nil && e.enabled.Load() {
		c.trigger(e)
	}
}

// listen has the engines tell of notifications if somebody wants to know.
func (e *EVD) listen() {
	e.listening.Lock()
	defer e.listening.Unlock()
	on := e.armed.Load() || e.cno.Load() != nil && e.enabled.Load()
	for _, q := range e.queues {
		q.Listen(on)
	}
}

// catchUp has the CNO told of what is queued already.
func (e *EVD) catchUp() {
	e.listen()
	if e.Len() > 0 && e.held.Load() != heldByWaiter {
		e.trigger()
	}
}

// ModifyCNO makes notifications trigger another CNO, nil for none (dat_evd_modify_cno). If events are
// queued, the new one is triggered. During the call either may be: Disable first to avoid it.
// ErrInvalidHandle for a CNO that is gone or of another IA.
func (e *EVD) ModifyCNO(cno *CNO) error {
	if err := e.lock(); err != nil {
		return err
	}
	defer e.ia.mu.Unlock()
	if !cno.serves(e.ia) {
		return fail(ErrInvalidHandle, "the notification object is not of this adapter")
	}
	e.associate(cno)
	return nil
}

// associate is called with IA.mu held and a CNO that serves it.
func (e *EVD) associate(cno *CNO) {
	old := e.cno.Load()
	if old == cno {
		return
	}
	if cno != nil {
		cno.join(e)
	}
	e.cno.Store(cno)
	if old != nil {
		old.leave(e, false)
	}
	e.catchUp()
}

// Enable lets notifications trigger the CNO (dat_evd_enable). If events are queued it is triggered at
// once, so that none is missed; enabling an enabled dispatcher does nothing.
func (e *EVD) Enable() error {
	if err := e.usable(); err != nil {
		return err
	}
	if !e.enabled.Swap(true) {
		e.catchUp()
	}
	return nil
}

// Disable keeps notifications from triggering the CNO (dat_evd_disable); a trigger that is under way may
// still come. Events go on arriving, and wake a goroutine inside Wait.
func (e *EVD) Disable() error {
	if err := e.usable(); err != nil {
		return err
	}
	if e.enabled.Swap(false) {
		e.listen()
	}
	return nil
}
