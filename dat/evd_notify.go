package dat

import (
	"sync"
	"sync/atomic"
)

// notifier is the part of an EVD that delivers notifications: to the goroutine inside Wait or, without one, to the
// CNO.
type notifier struct {
	cno     atomic.Pointer[CNO] // written with IA.mu held
	enabled atomic.Bool         // notifications may trigger the CNO

	listening sync.Mutex // makes listen atomic
}

// notified delivers a notification that has become visible. The owner of an engine may call it. While a goroutine is
// inside Wait, the CNO is not triggered.
func (e *EVD) notified() {
	if e.held.Load() != heldByWaiter {
		e.trigger()
	} else if e.armed.Load() && e.met() {
		e.wake.Raise()
	}
}

// trigger triggers the CNO if there is one and the dispatcher is enabled.
func (e *EVD) trigger() {
	if c := e.cno.Load(); c != nil && e.enabled.Load() {
		c.trigger(e)
	}
}

// listen turns the engines' reports of notifications on if a sleeping waiter or a CNO needs them, and off otherwise,
// because each report costs an engine a call.
func (e *EVD) listen() {
	e.listening.Lock()
	defer e.listening.Unlock()
	on := e.armed.Load() || e.cno.Load() != nil && e.enabled.Load()
	for _, q := range e.queues {
		q.Listen(on)
	}
}

// triggerIfQueued triggers the CNO for the events that are queued already.
func (e *EVD) triggerIfQueued() {
	e.listen()
	if e.Len() > 0 && e.held.Load() != heldByWaiter {
		e.trigger()
	}
}

// ModifyCNO makes notifications trigger another CNO; nil means none (dat_evd_modify_cno). If events are queued, the
// new CNO is triggered immediately. A notification during the call may trigger either CNO; to prevent that, call
// Disable first. It returns ErrInvalidHandle if the CNO is freed or of another IA.
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

// associate replaces the CNO. IA.mu is held, and cno is nil or a CNO of that IA.
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
	e.triggerIfQueued()
}

// Enable lets notifications trigger the CNO (dat_evd_enable). If events are queued, the CNO is triggered immediately,
// so that no event is missed. On an enabled dispatcher the call does nothing.
func (e *EVD) Enable() error {
	if err := e.usable(); err != nil {
		return err
	}
	if !e.enabled.Swap(true) {
		e.triggerIfQueued()
	}
	return nil
}

// Disable stops notifications from triggering the CNO (dat_evd_disable). A trigger that is in progress may still
// arrive. Events still arrive, and wake a goroutine inside Wait.
func (e *EVD) Disable() error {
	if err := e.usable(); err != nil {
		return err
	}
	if e.enabled.Swap(false) {
		e.listen()
	}
	return nil
}
