package dat

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/dat/internal/progress"
)

// CNO is a consumer notification object (DAT_CNO_HANDLE): it collects the notifications of many EVDs. A notification
// on an EVD triggers the EVD's CNO, unless the EVD is disabled or a goroutine is inside EVD.Wait. A trigger releases
// one goroutine from CNO.Wait. If no goroutine waits, the trigger is kept for the next Wait; several kept triggers
// count as one.
//
// Any goroutine may call its methods. Once the CNO is freed or its IA closed, each method returns ErrInvalidHandle.
type CNO struct {
	consumer
	ia *IA

	mu      sync.Mutex // guards the fields below; held briefly, because owners of engines wait for it
	dead    bool
	agent   func(*EVD) // called at the next trigger, once; nil for none
	evds    map[*EVD]struct{}
	latched []*EVD       // EVDs with a kept trigger, the latest last; has capacity for all of evds
	waiters []*cnoWaiter // goroutines in Wait, the longest waiting first
}

// CNOParam has the parameters of a CNO (DAT_CNO_PARAM).
type CNOParam struct {
	IA    *IA
	Agent func(*EVD) // nil if there is none, or if it was called already
}

// cnoWaiter is a goroutine in Wait.
type cnoWaiter struct {
	evd      *EVD // the EVD that triggered; nil if the CNO has lost its last EVD
	released atomic.Bool
	wake     progress.Signal
}

var cnoWaiters = sync.Pool{New: func() any { return &cnoWaiter{wake: progress.NewSignal()} }}

// CreateCNO creates a notification object (dat_cno_create). CreateEVD or EVD.ModifyCNO adds EVDs to it. The agent may
// be nil. It is called once, at the first trigger, with the EVD that triggered, in a goroutine of its own, so it may
// make any call. If the last EVD is freed or the IA is closed before a trigger, the agent is called with nil. A
// trigger releases a waiting goroutine too.
func (ia *IA) CreateCNO(agent func(*EVD)) (*CNO, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	c := &CNO{ia: ia, agent: agent, evds: map[*EVD]struct{}{}}
	ia.cnos[c] = struct{}{}
	return c, nil
}

// lock locks a usable CNO. It fails, without the lock, on another. The caller unlocks mu.
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

// serves reports whether c may be the CNO of an EVD of ia. A nil c may.
func (c *CNO) serves(ia *IA) bool { return c == nil || c.ia == ia && c.usable() == nil }

// ModifyAgent replaces the agent; nil removes it (dat_cno_modify_agent). The new agent is called at the next trigger.
// Triggers before this call do not call it, so look at the EVDs after the call.
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

// Wait waits until the CNO is triggered and returns the EVD that triggered it (dat_cno_wait). A negative timeout
// waits for ever, zero does not wait. It returns ErrQueueEmpty when the timeout has passed. Like EVD.Wait, it drives
// the adapter's engines for some tens of microseconds before it sleeps.
//
// The returned EVD is a hint: another goroutine may have emptied it, and other EVDs may have events too, because
// several kept triggers count as one. So look at every EVD of the CNO. If the last EVD is freed or the IA is closed
// during the wait, Wait returns nil and no error.
func (c *CNO) Wait(timeout time.Duration) (*EVD, error) {
	evd, err := c.wait(timeout, nil)
	if err == ErrTimeoutExpired {
		err = ErrQueueEmpty
	}
	return evd, err
}

// WaitContext is Wait until a context is done. It then returns the context's error, wrapped with ErrInterruptedCall.
func (c *CNO) WaitContext(ctx context.Context) (*EVD, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, fail(ErrInvalidParameter, "no context; use context.Background to wait for ever")
	}
	evd, err := c.wait(-1, ctx.Done())
	return evd, interrupted(ctx, err)
}

// wait is Wait that also ends when done is closed.
func (c *CNO) wait(timeout time.Duration, done <-chan struct{}) (*EVD, error) {
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
	err := c.ia.a.park(w, progress.Until(timeout), done)
	return c.endWait(w, err)
}

// endWait ends the waiting of w. It returns err, or nil if a trigger has released w.
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

// Trigger takes the kept trigger without waiting (dat_cno_trigger). It returns the EVD that triggered last, or nil if
// no trigger is kept.
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

// unlatch takes the kept triggers, which count as one, and returns the EVD of the latest. mu is held.
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

// emptied drops the kept trigger of an EVD after its last event was taken, because that trigger would report no
// event. No event is missed: an event that arrives meanwhile either shows in Len, or triggers the CNO once mu is
// free.
func (c *CNO) emptied(e *EVD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Len() == 0 {
		c.forget(e)
	}
}

// trigger delivers a notification of e. Owners of engines call it.
func (c *CNO) trigger(e *EVD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ours := c.evds[e]; !ours {
		return // e has left this CNO meanwhile
	}
	c.ia.a.tallies.triggers.Add(1)
	c.call(e)
	if len(c.waiters) > 0 {
		c.release(e)
	} else {
		c.latch(e)
	}
}

// call calls the agent, if there is one, and removes it. mu is held.
func (c *CNO) call(e *EVD) {
	if agent := c.agent; agent != nil {
		c.agent = nil
		go agent(e)
	}
}

// release releases the goroutine that has waited longest. mu is held and a goroutine waits.
func (c *CNO) release(e *EVD) {
	w := c.waiters[0]
	c.waiters = slices.Delete(c.waiters, 0, 1)
	c.ia.a.tallies.wakeups.Add(1)
	w.evd = e
	w.released.Store(true)
	w.wake.Raise()
}

// releaseAll releases all waiting goroutines and calls the agent, because no EVD is left that could trigger. mu is
// held.
func (c *CNO) releaseAll() {
	c.latched = nil
	c.call(nil)
	for len(c.waiters) > 0 {
		c.release(nil)
	}
}

// join adds an EVD.
func (c *CNO) join(e *EVD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evds[e] = struct{}{}
	c.latched = slices.Grow(c.latched, len(c.evds)) // so that latch does not allocate
}

// leave removes an EVD and its kept trigger: the EVD was freed or has another CNO now.
func (c *CNO) leave(e *EVD, freed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.evds, e)
	if freed && len(c.evds) == 0 {
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

// Arm implements progress.Waiting. It does nothing: a release always raises the signal.
func (w *cnoWaiter) Arm(bool) {}

// Signal implements progress.Waiting.
func (w *cnoWaiter) Signal() progress.Signal { return w.wake }

var _, _ progress.Waiting = (*waiting)(nil), (*cnoWaiter)(nil)
