package dat

import (
	"sync"
	"sync/atomic"
)

// notifier is the part of an EVD that delivers notifications. While a goroutine is inside Wait, notifications go to
// that goroutine. At other times, they go to the CNO.
type notifier struct {
	cno        atomic.Pointer[CNO] // written with IA.mu held
	cnoEnabled atomic.Bool         // whether notifications trigger the CNO

	listenMu sync.Mutex // serialises calls of updateListening
}

// onNotification delivers the notification of an event. The caller has already queued the event, so that Len and
// Dequeue see it. The owner of an engine may call onNotification.
func (e *EVD) onNotification() {
	if e.userState.Load() != heldByWaiter {
		e.triggerCNO()
	} else if e.armed.Load() && e.mayReturn() {
		e.wake.Raise()
	}
}

// triggerCNO triggers the CNO if there is one and the dispatcher is enabled.
func (e *EVD) triggerCNO() {
	if c := e.cno.Load(); c != nil && e.cnoEnabled.Load() {
		c.deliver(e)
	}
}

// updateListening decides whether the engines call onNotification for each notification. They do if a sleeping waiter
// or a CNO needs the notifications. If not, the calls would only cost the engines time.
func (e *EVD) updateListening() {
	e.listenMu.Lock()
	defer e.listenMu.Unlock()
	on := e.armed.Load() || e.cno.Load() != nil && e.cnoEnabled.Load()
	for _, q := range e.queues {
		q.Listen(on)
	}
}

// triggerIfQueued is called after a change of cno or cnoEnabled. It calls updateListening. Then, if events are queued
// already and no goroutine is inside Wait, it triggers the CNO.
func (e *EVD) triggerIfQueued() {
	e.updateListening()
	if e.Len() > 0 && e.userState.Load() != heldByWaiter {
		e.triggerCNO()
	}
}

// ModifyCNO replaces the CNO that notifications trigger; the argument nil means no CNO (dat_evd_modify_cno). If events
// are queued, ModifyCNO triggers the new CNO immediately. A notification during the call may trigger the old or the new
// CNO; to prevent that, call Disable first. ModifyCNO returns ErrInvalidHandle if the CNO is freed or belongs to
// another IA.
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
		cno.addEVD(e)
	}
	e.cno.Store(cno)
	if old != nil {
		old.removeEVD(e, false)
	}
	e.triggerIfQueued()
}

// Enable makes notifications trigger the CNO (dat_evd_enable). If events are queued, Enable triggers the CNO
// immediately, so that no event is missed. On an enabled dispatcher, Enable does nothing.
func (e *EVD) Enable() error {
	if err := e.usable(); err != nil {
		return err
	}
	if !e.cnoEnabled.Swap(true) {
		e.triggerIfQueued()
	}
	return nil
}

// Disable stops notifications from triggering the CNO (dat_evd_disable). A notification that is being delivered during
// the call may still trigger the CNO after the call. The dispatcher still accepts events, and these events still wake a
// goroutine inside Wait.
func (e *EVD) Disable() error {
	if err := e.usable(); err != nil {
		return err
	}
	if e.cnoEnabled.Swap(false) {
		e.updateListening()
	}
	return nil
}
