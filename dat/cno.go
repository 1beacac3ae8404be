package dat

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/dat/internal/progress"
)

// CNO is a consumer notification object (DAT_CNO_HANDLE). A goroutine in CNO.Wait waits for events of many EVDs, and
// gets an EVD that has an event. More precisely: an EVD triggers its CNO for each notification, which is an event that
// may wake a waiter. It does not trigger the CNO while it is disabled or a goroutine is inside EVD.Wait. A trigger
// releases one goroutine from CNO.Wait. If no goroutine waits, the CNO keeps the trigger for the next Wait. Several
// kept triggers count as one: they release one goroutine.
//
// Any goroutine may call the methods. After the CNO is freed or its IA is closed, each method returns
// ErrInvalidHandle.
type CNO struct {
	consumer
	ia *IA

	mu      sync.Mutex // guards the fields below; held briefly, because owners of engines wait for it
	dead    bool
	agent   func(*EVD) // function that the next trigger calls, once; nil: none
	evds    map[*EVD]struct{}
	latched []*EVD       // EVDs with a kept trigger, in the order of the triggers; its capacity suffices for all of evds
	waiters []*cnoWaiter // goroutines in Wait, in the order of their calls
}

// CNOParam has the parameters of a CNO (DAT_CNO_PARAM).
type CNOParam struct {
	IA    *IA
	Agent func(*EVD) // nil if no agent was set, or if it was called already
}

// cnoWaiter is a goroutine in Wait.
type cnoWaiter struct {
	evd      *EVD // the EVD that triggered; nil if no EVD is left that could trigger
	released atomic.Bool
	wake     progress.Signal
}

var cnoWaiters = sync.Pool{New: func() any { return &cnoWaiter{wake: progress.NewSignal()} }}

// CreateCNO creates a notification object (dat_cno_create). CreateEVD and EVD.ModifyCNO add EVDs to it.
//
// The argument agent may be nil. If agent is a function, the first trigger calls that function, once, with the EVD that
// triggered. The agent runs in a new goroutine, so it may make any call. The same trigger also releases a waiting
// goroutine. If the CNO's last EVD is freed or the IA is closed before the first trigger, the agent is called with nil.
func (ia *IA) CreateCNO(agent func(*EVD)) (*CNO, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	c := &CNO{ia: ia, agent: agent, evds: map[*EVD]struct{}{}}
	ia.cnos[c] = struct{}{}
	return c, nil
}

// lock locks mu. It returns an error and does not lock if the CNO is nil or freed. The caller unlocks mu.
func (c *CNO) lock() error {
	if c == nil {
		return errHandleCNO
	}
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return errHandleCNO
	}
	return nil
}

// usable returns an error if the CNO is nil, freed or closed.
func (c *CNO) usable() error {
	if err := c.lock(); err != nil {
		return err
	}
	c.mu.Unlock()
	return nil
}

// serves reports whether an EVD of ia may use c as its CNO. It is true for a nil c, which means no CNO.
func (c *CNO) serves(ia *IA) bool { return c == nil || c.ia == ia && c.usable() == nil }

// ModifyAgent replaces the agent; nil removes the agent (dat_cno_modify_agent). The next trigger calls the new agent.
// Triggers before the call of ModifyAgent do not call the new agent. So after the call, look for events in the EVDs.
func (c *CNO) ModifyAgent(agent func(*EVD)) error {
	if err := c.lock(); err != nil {
		return err
	}
	defer c.mu.Unlock()
	c.agent = agent
	return nil
}

// Query returns the parameters of the CNO (dat_cno_query).
func (c *CNO) Query() (CNOParam, error) {
	if err := c.lock(); err != nil {
		return CNOParam{}, err
	}
	defer c.mu.Unlock()
	return CNOParam{IA: c.ia, Agent: c.agent}, nil
}

// Wait waits until an EVD triggers the CNO, and returns that EVD (dat_cno_wait). It returns ErrQueueEmpty when the
// timeout has passed. With a negative timeout, Wait waits for ever; with a zero timeout, it does not wait. Like
// EVD.Wait, it polls the adapter's engines, and sleeps after some tens of microseconds without a packet.
//
// The returned EVD is only a hint. Another goroutine may already have taken the events of that EVD. Other EVDs may have
// events too: if several EVDs trigger the CNO while no goroutine waits, Wait returns only the EVD that triggered last.
// So look for events in every EVD of the CNO.
//
// If the CNO's last EVD is freed or the IA is closed during the call, Wait returns nil and no error.
func (c *CNO) Wait(timeout time.Duration) (*EVD, error) {
	evd, err := c.waitInterruptible(timeout, nil)
	if err == ErrTimeoutExpired {
		err = ErrQueueEmpty
	}
	return evd, err
}

// WaitContext is Wait without a timeout. When ctx is done, WaitContext returns an error that wraps both
// ErrInterruptedCall and the error of ctx.
func (c *CNO) WaitContext(ctx context.Context) (*EVD, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, fail(ErrInvalidParameter, "the context is nil; use context.Background to wait for ever")
	}
	evd, err := c.waitInterruptible(-1, ctx.Done())
	return evd, wrapInterrupted(ctx, err)
}

// waitInterruptible is like Wait, with two differences. It returns ErrInterruptedCall when doneCh is closed, and it
// returns ErrTimeoutExpired where Wait returns ErrQueueEmpty.
func (c *CNO) waitInterruptible(timeout time.Duration, doneCh <-chan struct{}) (*EVD, error) {
	if err := c.lock(); err != nil {
		return nil, err
	}
	if evd := c.unlatch(); evd != nil {
		c.mu.Unlock()
		return evd, nil
	}
	w := cnoWaiters.Get().(*cnoWaiter)
	c.waiters = append(c.waiters, w)
	c.mu.Unlock()
	err := c.ia.a.waitReady(w, progress.Until(timeout), doneCh)
	return c.endWait(w, err)
}

// endWait removes w from the waiters. If a trigger has released w, it returns the EVD and no error, otherwise err.
func (c *CNO) endWait(w *cnoWaiter, err error) (*EVD, error) {
	c.mu.Lock()
	if i := slices.Index(c.waiters, w); i >= 0 {
		c.waiters = slices.Delete(c.waiters, i, i+1)
	}
	c.mu.Unlock()
	evd := w.evd
	if w.released.Load() {
		err = nil
		w.wake.Clear()
	}
	w.evd = nil
	w.released.Store(false)
	cnoWaiters.Put(w)
	return evd, err
}

// Trigger is Wait with a zero timeout (dat_cno_trigger). If EVDs have triggered the CNO while no goroutine waited,
// Trigger returns the EVD that triggered last. Otherwise Trigger returns nil.
func (c *CNO) Trigger() (*EVD, error) {
	if err := c.lock(); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	return c.unlatch(), nil
}

// Free frees the CNO (dat_cno_free). It returns ErrInvalidState while an EVD uses the CNO or a goroutine waits on it.
func (c *CNO) Free() error {
	if c == nil {
		return ErrInvalidHandle
	}
	if err := c.ia.lock(); err != nil {
		return err
	}
	defer c.ia.mu.Unlock()
	if err := c.lock(); err != nil {
		return err
	}
	defer c.mu.Unlock()
	if len(c.evds) > 0 || len(c.waiters) > 0 {
		return fail(ErrInvalidState, "%d event dispatchers and %d goroutines use the notification object", len(c.evds), len(c.waiters))
	}
	c.dead = true
	delete(c.ia.cnos, c)
	return nil
}

// unlatch takes the triggers that the CNO keeps for the next Wait. It returns the EVD that triggered last, or nil if
// the CNO keeps no trigger. It also drops the other kept triggers, because several kept triggers count as one. mu is
// held.
func (c *CNO) unlatch() *EVD {
	n := len(c.latched)
	if n == 0 {
		return nil
	}
	e := c.latched[n-1]
	clear(c.latched)
	c.latched = c.latched[:0]
	return e
}

// latch keeps the trigger of an EVD for the next Wait. mu is held.
func (c *CNO) latch(e *EVD) {
	c.forget(e)
	c.latched = append(c.latched, e)
}

// forget drops the kept trigger of an EVD, if there is one. mu is held.
func (c *CNO) forget(e *EVD) {
	if i := slices.Index(c.latched, e); i >= 0 {
		c.latched = slices.Delete(c.latched, i, i+1)
	}
}

// forgetIfEmpty is called after a consumer has taken the last event of the EVD e. If the CNO keeps a trigger of e for
// the next Wait, forgetIfEmpty drops that trigger. Otherwise Wait would return e, and the caller of Wait would find no
// event there. An event may arrive during the call. Then either e.Len counts the event and the CNO keeps the trigger,
// or the event triggers the CNO after mu is unlocked.
func (c *CNO) forgetIfEmpty(e *EVD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Len() == 0 {
		c.forget(e)
	}
}

// deliver delivers a notification of the EVD e. If the CNO has an agent (see CreateCNO), deliver calls the agent. It
// then ends the Wait of one goroutine. If no goroutine is in Wait, the CNO keeps the trigger for the next Wait, unless a
// consumer has taken the events of e meanwhile. The owner of an engine may call deliver.
func (c *CNO) deliver(e *EVD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ours := c.evds[e]; !ours {
		return // e was freed or has another CNO now
	}
	c.ia.a.tallies.triggers.Add(1)
	c.callAgent(e)
	if len(c.waiters) > 0 {
		c.releaseOldest(e)
	} else if e.Len() > 0 {
		c.latch(e)
	}
}

// callAgent calls the agent, if there is one, and removes the agent from the CNO. mu is held.
func (c *CNO) callAgent(e *EVD) {
	if agent := c.agent; agent != nil {
		c.agent = nil
		go agent(e)
	}
}

// releaseOldest ends the wait of the goroutine that has waited longest; the Wait of that goroutine returns e. mu is
// held, and at least one goroutine waits.
func (c *CNO) releaseOldest(e *EVD) {
	w := c.waiters[0]
	c.waiters = slices.Delete(c.waiters, 0, 1)
	c.ia.a.tallies.wakeups.Add(1)
	w.evd = e
	w.released.Store(true)
	w.wake.Raise()
}

// releaseAll calls the agent with a nil EVD, and ends the waits of all goroutines: each Wait returns a nil EVD. It is
// called when the CNO has no EVD that could trigger it. mu is held.
func (c *CNO) releaseAll() {
	c.latched = nil
	c.callAgent(nil)
	for len(c.waiters) > 0 {
		c.releaseOldest(nil)
	}
}

// addEVD adds an EVD.
func (c *CNO) addEVD(e *EVD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evds[e] = struct{}{}
	c.latched = slices.Grow(c.latched, len(c.evds)) // so that latch does not allocate
}

// removeEVD removes an EVD from the CNO. If the CNO keeps a trigger of that EVD for the next Wait, removeEVD drops the
// trigger. evdGone is true if the EVD was freed, and false if the EVD has another CNO now.
func (c *CNO) removeEVD(e *EVD, evdGone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.evds, e)
	if evdGone && len(c.evds) == 0 {
		c.releaseAll()
		return
	}
	c.forget(e)
}

// abort ends the CNO when its IA closes.
func (c *CNO) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseAll()
	c.dead = true
}

// Ready implements progress.Waiting.
func (w *cnoWaiter) Ready() bool { return w.released.Load() }

// Arm implements progress.Waiting. It does nothing, because releaseOldest raises the signal whether or not it is armed.
func (w *cnoWaiter) Arm(bool) {}

// Signal implements progress.Waiting.
func (w *cnoWaiter) Signal() progress.Signal { return w.wake }

var _, _ progress.Waiting = (*waiting)(nil), (*cnoWaiter)(nil)
