package dat

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/dat/internal/progress"
)

// CNO is a consumer notification object (DAT_CNO_HANDLE): it gathers the notifications of many EVDs.
// A notification on an enabled EVD on which no goroutine waits triggers it, which releases one goroutine
// in Wait; with none there, the trigger is kept for the next, together with those that follow.
//
// All its methods may be called by any goroutine. On a CNO that was freed, or whose IA was closed, each
// returns ErrInvalidHandle.
type CNO struct {
	consumer
	ia *IA

	mu      sync.Mutex // guards what follows; held for moments, engines wait for it
	dead    bool
	agent   func(*EVD)
	evds    map[*EVD]struct{}
	latched []*EVD       // that triggered while nobody waited, the last one last; room for all of evds
	waiters []*cnoWaiter // the longest waiting first
}

// CNOParam describes a CNO (DAT_CNO_PARAM).
type CNOParam struct {
	IA    *IA
	Agent func(*EVD) // nil for none, or one that was called
}

// cnoWaiter is a goroutine in Wait.
type cnoWaiter struct {
	evd      *EVD // that triggered; nil when the CNO has no EVD any more
	released atomic.Bool
	wake     progress.Signal
}

var cnoWaiters = sync.Pool{New: func() any { return &cnoWaiter{wake: progress.NewSignal()} }}

// CreateCNO makes a notification object without EVDs (dat_cno_create): name it in CreateEVD or
// EVD.ModifyCNO. The agent, which may be nil, is called with the EVD at the first trigger, once, in a
// goroutine of its own, so that it may call everything; it gets nil if the last EVD is freed or the IA
// closed before. Waiters are released all the same.
func (ia *IA) CreateCNO(agent func(*EVD)) (*CNO, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	c := &CNO{ia: ia, agent: agent, evds: map[*EVD]struct{}{}}
	ia.cnos[c] = struct{}{}
	return c, nil
}

// lock locks a CNO that is usable. The caller unlocks it after success.
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

// usable tells of a handle whether it can be used.
func (c *CNO) usable() error {
	if err := c.lock(); err != nil {
		return err
	}
	c.mu.Unlock()
	return nil
}

// serves reports whether c, nil for none, may be the CNO of an EVD of ia.
func (c *CNO) serves(ia *IA) bool { return c == nil || c.ia == ia && c.usable() == nil }

// ModifyAgent puts another agent in the place of the one before, nil takes it away
// (dat_cno_modify_agent). It is called at the next trigger: look at the EVDs after this call for what came
// before.
func (c *CNO) ModifyAgent(agent func(*EVD)) error {
	if err := c.lock(); err != nil {
		return err
	}
	defer c.mu.Unlock()
	c.agent = agent
	return nil
}

// Query describes the CNO (dat_cno_query).
func (c *CNO) Query() (CNOParam, error) {
	if err := c.lock(); err != nil {
		return CNOParam{}, err
	}
	defer c.mu.Unlock()
	return CNOParam{IA: c.ia, Agent: c.agent}, nil
}

// Wait waits until the CNO is triggered and returns the EVD that did it (dat_cno_wait). A negative
// timeout waits for ever, zero does not wait; ErrQueueEmpty when it has passed. Like EVD.Wait it drives
// the adapter's engines for some tens of microseconds before it sleeps.
//
// The EVD is a hint: another goroutine may have emptied it, and others may have events too, since
// triggers that nobody waited for are one. Look at every EVD of the CNO. It is nil, and the error too, if
// the last EVD was freed or the IA closed meanwhile.
func (c *CNO) Wait(timeout time.Duration) (*EVD, error) {
	evd, err := c.wait(timeout, nil)
	if err == ErrTimeoutExpired {
		err = ErrQueueEmpty
	}
	return evd, err
}

// WaitContext is Wait until a context is done. It returns the context's error then, wrapped with
// ErrInterruptedCall.
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

// wait is Wait until a timeout or until done is closed.
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
	return c.dismiss(w, err)
}

// dismiss ends the waiting of w; err counts unless it was released.
func (c *CNO) dismiss(w *cnoWaiter, err error) (*EVD, error) {
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

// Trigger takes a trigger that nobody has waited for (dat_cno_trigger), without waiting: the EVD that
// triggered last, nil if none did.
func (c *CNO) Trigger() (*EVD, error) {
	if err := c.lock(); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	return c.unlatch(), nil
}

// Free ends the CNO (dat_cno_free). ErrInvalidState while an EVD has it or a goroutine waits on it.
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

// unlatch takes the trigger that is kept, and with it those of other EVDs before it: they are one.
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

// latch keeps the trigger of an EVD.
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

// emptied drops the kept trigger of an EVD whose last event was taken: it would tell of nothing. An event that
// comes meanwhile is seen by Len, or triggers after mu is released.
func (c *CNO) emptied(e *EVD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Len() == 0 {
		c.forget(e)
	}
}

// trigger tells of a notification on e. Owners of engines call it.
func (c *CNO) trigger(e *EVD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ours := c.evds[e]; !ours {
		return // it was taken away meanwhile
	}
	c.ia.a.tallies.triggers.Add(1)
	c.call(e)
	if len(c.waiters) > 0 {
		c.release(e)
	} else {
		c.latch(e)
	}
}

// call calls the agent if there is one, and lets go of it.
func (c *CNO) call(e *EVD) {
	if agent := c.agent; agent != nil {
		c.agent = nil
		go agent(e)
	}
}

// release lets the longest waiting goroutine go.
func (c *CNO) release(e *EVD) {
	w := c.waiters[0]
	c.waiters = slices.Delete(c.waiters, 0, 1)
	c.ia.a.tallies.wakeups.Add(1)
	w.evd = e
	w.released.Store(true)
	w.wake.Raise()
}

// releaseAll lets everybody go because there is nothing to wait for.
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
	c.latched = slices.Grow(c.latched, len(c.evds)) // a trigger does not allocate
}

// leave takes an EVD away, because it is freed or has another CNO, with a trigger of it that is kept.
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

// abort ends the CNO with its IA.
func (c *CNO) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseAll()
	c.dead = true
}

// Ready implements progress.Waiting.
func (w *cnoWaiter) Ready() bool { return w.released.Load() }

// Arm implements progress.Waiting: a release always raises the signal.
func (w *cnoWaiter) Arm(bool) {}

// Signal implements progress.Waiting.
func (w *cnoWaiter) Signal() progress.Signal { return w.wake }

var _, _ progress.Waiting = (*waiting)(nil), (*cnoWaiter)(nil)
