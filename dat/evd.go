package dat

import (
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// EVD is an event dispatcher (DAT_EVD_HANDLE): a queue of events. All its methods may be called by
// any goroutine; Dequeue and Wait drive the adapter's engines while they look.
type EVD struct {
	consumer
	ia    *IA
	flags EVDFlags
	qlen  int

	queues []*wire.Queue // one for each engine, in the order of the adapter's drivers
	refs   refs          // endpoints and service points that feed it
	state  atomic.Uint32 // evdFreed, evdAborted

	// take serialises consumers; turn is the queue that is looked at first. slow holds the events
	// that do not come from an engine's queue, bounded by qlen.
	take    sync.Mutex
	turn    int
	slowMu  sync.Mutex
	slow    []Event
	nslow   atomic.Int32
	waiting atomic.Bool // a goroutine is inside Wait
	armed   atomic.Bool // and asleep, or about to be
	wake    chan struct{}
	lost    atomic.Uint64 // events that found the queue full
}

const (
	evdFreed   = 1
	evdAborted = 2
)

// CreateEVD makes an event dispatcher for at least qlen events of the given streams
// (dat_evd_create). The notification object, which may be nil, is triggered by what arrives.
func (ia *IA) CreateEVD(qlen int, cno *CNO, flags EVDFlags) (*EVD, error) {
	if cno != nil {
		return nil, ErrInvalidHandle
	}
	if qlen < 1 {
		return nil, fail(ErrInvalidParameter, "queue length %d", qlen)
	}
	if qlen > maxEVDQLen {
		return nil, fail(ErrInsufficientResources, "queue length %d; the largest is %d", qlen, maxEVDQLen)
	}
	if flags == 0 || flags&^evdAll != 0 {
		return nil, fail(ErrInvalidParameter, "event dispatcher flags %#x", uint16(flags))
	}
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if err := ia.a.admit(HandleEVD); err != nil {
		return nil, err
	}
	e := &EVD{ia: ia, flags: flags, qlen: qlen, wake: make(chan struct{}, 1)}
	for range ia.a.drivers {
		e.queues = append(e.queues, wire.NewQueue(qlen, e.notify, e.overflow))
	}
	ia.evds[e] = struct{}{}
	return e, nil
}

// QLen is how many events the dispatcher holds (evd_qlen of dat_evd_query).
func (e *EVD) QLen() int { return e.queues[0].Cap() }

// Len is the number of events that wait.
func (e *EVD) Len() int {
	n := int(e.nslow.Load())
	for _, q := range e.queues {
		n += q.Len()
	}
	return n
}

// Dequeue takes the first event out, driving the engines once if there is none (dat_evd_dequeue).
// It returns ErrQueueEmpty when there is none then either, and ErrInvalidState while another
// goroutine is inside Wait. It does not allocate.
func (e *EVD) Dequeue(ev *Event) error {
	if err := e.usable(); err != nil {
		return err
	}
	if e.waiting.Load() {
		return ErrInvalidState
	}
	if e.pop(ev) {
		return nil
	}
	now := clock()
	for _, d := range e.ia.a.drivers {
		d.poll(now)
	}
	if e.pop(ev) {
		return nil
	}
	return ErrQueueEmpty
}

func (e *EVD) usable() error {
	if e == nil || e.state.Load() == evdFreed {
		return ErrInvalidHandle
	}
	if e.state.Load() == evdAborted {
		return ErrInvalidHandle
	}
	return nil
}

// pop takes the first event out.
func (e *EVD) pop(ev *Event) bool {
	e.take.Lock()
	defer e.take.Unlock()
	var c wire.Completion
	for range e.queues {
		if e.queues[e.turn].Pop(&c) {
			ev.fill(e, &c)
			return true
		}
		if e.turn++; e.turn == len(e.queues) {
			e.turn = 0
		}
	}
	return e.nslow.Load() > 0 && e.popSlow(ev)
}

func (e *EVD) popSlow(ev *Event) bool {
	e.slowMu.Lock()
	defer e.slowMu.Unlock()
	if len(e.slow) == 0 {
		return false
	}
	*ev = e.slow[0]
	e.slow[0] = Event{}
	if e.slow = e.slow[1:]; len(e.slow) == 0 {
		e.slow = nil
	}
	e.nslow.Add(-1)
	return true
}

// post adds an event that does not come from an engine's queue; false when the dispatcher is full.
func (e *EVD) post(ev Event) bool {
	e.slowMu.Lock()
	full := len(e.slow) >= e.qlen
	if !full {
		ev.EVD = e
		e.slow = append(e.slow, ev)
		e.nslow.Add(1)
	}
	e.slowMu.Unlock()
	if !full && e.armed.Load() {
		e.notify()
	}
	return !full
}

// notify wakes the waiter.
func (e *EVD) notify() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// overflow reports a lost event on the asynchronous EVD.
func (e *EVD) overflow() {
	if e.lost.Add(1) == 1 && e.ia.async != nil {
		e.ia.async.post(Event{Number: EventAsyncEVDOverflow, Source: e})
	}
}

// abort ends the dispatcher; a waiter returns ErrAbort.
func (e *EVD) abort() {
	e.state.Store(evdAborted)
	e.notify()
}

// Free ends a dispatcher (dat_evd_free); events in it are lost. ErrInvalidState while an endpoint or
// a service point feeds it or a goroutine waits on it.
func (e *EVD) Free() error {
	if err := e.usable(); err != nil {
		return err
	}
	if err := e.ia.lock(); err != nil {
		return err
	}
	defer e.ia.mu.Unlock()
	switch {
	case e.state.Load() == evdFreed:
		return ErrInvalidHandle
	case !e.refs.free() || e.waiting.Load():
		return fail(ErrInvalidState, "the event dispatcher is in use")
	}
	e.state.Store(evdFreed)
	if e != e.ia.async {
		e.ia.a.dismiss(HandleEVD, 1)
	}
	delete(e.ia.evds, e)
	return nil
}

// feeds checks that e, which may be nil, can take a stream for an object of ia.
func (e *EVD) feeds(ia *IA, stream EVDFlags) error {
	if e == nil {
		return nil
	}
	if e.usable() != nil || e.ia.a != ia.a || e.flags&stream == 0 {
		return ErrInvalidHandle
	}
	return nil
}

// queue is where the engine with an index puts completions; nil for no dispatcher.
func (e *EVD) queue(engine int) *wire.Queue {
	if e == nil {
		return nil
	}
	return e.queues[engine]
}
