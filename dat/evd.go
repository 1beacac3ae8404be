package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/wire"
)

// EVD is an event dispatcher (DAT_EVD_HANDLE): a queue of events. Each event is returned once, by a call of Dequeue or
// Wait. Events of one stream, such as the completions of an endpoint's receives, are returned in the order in which
// they were queued.
//
// Any goroutine may call the methods. Dequeue and Wait poll the adapter's engines while they look for events. After
// the dispatcher is freed or its IA is closed, each method returns ErrInvalidHandle.
type EVD struct {
	consumer
	ia    *IA
	flags EVDFlags

	queues  []*wire.Queue // completions and connection events, one queue for each engine, in the order of adapter.drivers
	room    *wire.Room    // limits the sum of events in queues and slow; nil if there is one queue and slow is unused
	backlog *wire.Backlog // limits the connection requests in slow; nil if room is nil; guarded by slowMu
	qlen    atomic.Int32
	refs    refs          // counts the streams that feed the dispatcher
	state   atomic.Uint32 // 0, evdFreed or evdAborted

	feedCounts feedCounts    // guarded by adapter.feedMu
	config     atomic.Uint32 // feedCounts.config(), for readers that do not lock

	dequeueState
	slowEvents

	overflowReported atomic.Bool // an overflow was reported, and the dispatcher has not been empty since then

	waiter
	notifier
}

const (
	evdFreed   = 1
	evdAborted = 2
)

// EVDState is the state of a dispatcher (DAT_EVD_STATE). It combines three values: enabled or disabled, waitable or
// unwaitable, and a configuration that follows from the completion flags of the event streams that feed the dispatcher.
type EVDState uint8

// States of dispatchers.
const (
	EVDStateEnabled    EVDState = 0x01 // notifications trigger the CNO
	EVDStateDisabled   EVDState = 0x02 // notifications do not trigger the CNO
	EVDStateWaitable   EVDState = 0x04 // Wait is legal
	EVDStateUnwaitable EVDState = 0x08 // Wait returns ErrInvalidState

	evdStateConfig          EVDState = 0x30
	EVDStateConfigNotify    EVDState = 0x10 // the streams have CompletionUnsignalled
	EVDStateConfigSolicited EVDState = 0x20 // the streams are receives with CompletionSolicitedWait
	EVDStateConfigThreshold EVDState = 0x30 // the streams have neither flag: each completion counts toward the threshold
)

// Config returns the configuration. It follows from the completion flags of the streams that feed the dispatcher.
func (s EVDState) Config() EVDState { return s & evdStateConfig }

// EVDParam has the parameters of a dispatcher (DAT_EVD_PARAM).
type EVDParam struct {
	IA    *IA
	QLen  int // maximum number of queued events
	State EVDState
	CNO   *CNO // nil: none
	Flags EVDFlags
}

// CreateEVD creates an event dispatcher, enabled and waitable (dat_evd_create). The argument flags names the event
// streams, the kinds of events that the dispatcher accepts; any combination is legal. The dispatcher holds up to qlen
// events. With EVDCR, it holds up to qlen connection requests in addition. CreatePSP says how many of these connection
// requests may come from one address. Notifications trigger cno; a nil cno means that they trigger nothing.
//
// Errors: ErrInvalidHandle (the CNO is freed or belongs to another IA), ErrInvalidParameter (qlen below 1, no event
// stream, or an unknown one), ErrInsufficientResources (qlen above IAAttr.MaxEVDQLen, or the adapter has IAAttr.MaxEVDs
// event dispatchers already).
func (ia *IA) CreateEVD(qlen int, cno *CNO, flags EVDFlags) (*EVD, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	switch {
	case !cno.serves(ia):
		return nil, fail(ErrInvalidHandle, "the notification object is not of this adapter")
	case qlen < 1:
		return nil, fail(ErrInvalidParameter, "queue length %d; the minimum is 1", qlen)
	case qlen > maxEVDQLen:
		return nil, fail(ErrInsufficientResources, "queue length %d; the maximum is %d", qlen, maxEVDQLen)
	case flags == 0 || flags&^evdAll != 0:
		return nil, fail(ErrInvalidParameter, "event dispatcher flags %#x; use the EVD constants", uint16(flags))
	}
	if err := ia.a.addObject(HandleEVD); err != nil {
		return nil, err
	}
	e := newEVD(ia, qlen, flags)
	ia.evds[e] = struct{}{}
	e.associate(cno)
	return e, nil
}

func newEVD(ia *IA, qlen int, flags EVDFlags) *EVD {
	e := &EVD{ia: ia, flags: flags}
	e.qlen.Store(int32(qlen))
	e.config.Store(uint32(EVDStateConfigThreshold))
	e.wake = progress.NewSignal()
	e.cnoEnabled.Store(true)
	if len(ia.a.drivers) > 1 || flags&evdSlow != 0 {
		e.room, e.backlog = wire.NewRoom(qlen), wire.NewBacklog(qlen)
	}
	for range ia.a.drivers {
		q := wire.NewQueue(qlen, e.onNotification, e.reportOverflow)
		q.Share(e.room)
		e.queues = append(e.queues, q)
	}
	return e
}

// QLen returns the maximum number of queued events (evd_qlen of dat_evd_query).
func (e *EVD) QLen() int { return int(e.qlen.Load()) }

// Query returns the parameters of the dispatcher (dat_evd_query).
func (e *EVD) Query() (EVDParam, error) {
	if err := e.usable(); err != nil {
		return EVDParam{}, err
	}
	p := EVDParam{IA: e.ia, QLen: e.QLen(), Flags: e.flags, CNO: e.cno.Load()}
	p.State = EVDState(e.config.Load()) | EVDStateDisabled | EVDStateWaitable
	if e.cnoEnabled.Load() {
		p.State ^= EVDStateEnabled | EVDStateDisabled
	}
	if e.unwaitable.Load() {
		p.State ^= EVDStateWaitable | EVDStateUnwaitable
	}
	return p, nil
}

func (e *EVD) usable() error {
	if e == nil || e.state.Load() != 0 {
		return ErrInvalidHandle
	}
	return nil
}

// lock locks the IA. It returns an error and does not lock if the dispatcher is nil, freed or closed. The caller
// unlocks ia.mu.
func (e *EVD) lock() error {
	if err := e.usable(); err != nil {
		return err
	}
	if err := e.ia.lock(); err != nil {
		return err
	}
	if err := e.usable(); err != nil {
		e.ia.mu.Unlock()
		return err
	}
	return nil
}

// abort ends the dispatcher: Wait returns ErrAbort.
func (e *EVD) abort() {
	e.state.CompareAndSwap(0, evdAborted)
	e.wake.Raise()
}

// Free frees the dispatcher (dat_evd_free). Its queued events are lost; queued connection requests are refused. Free
// returns ErrInvalidState while an endpoint or a service point feeds the dispatcher, or while a goroutine waits on it.
// Freeing the last EVD of a CNO releases the goroutines that wait on the CNO. The asynchronous EVD may be freed too;
// later asynchronous events are then dropped.
func (e *EVD) Free() error {
	if err := e.lock(); err != nil {
		return err
	}
	defer e.ia.mu.Unlock()
	if !e.markFreed() {
		return fail(ErrInvalidState, "an endpoint or service point feeds the event dispatcher, or a goroutine waits on it")
	}
	if c := e.cno.Swap(nil); c != nil {
		c.removeEVD(e, true)
	}
	for ev := (Event{}); e.popAny(&ev); { // a receive of an SRQ stays outstanding until its completion is taken
		if ev.Number == EventConnectionRequest {
			ev.CR.refuse()
		}
	}
	if e != e.ia.async {
		e.ia.a.removeObjects(HandleEVD, 1)
	}
	delete(e.ia.evds, e)
	return nil
}

// markFreed marks the dispatcher as freed. If an object uses the dispatcher or a goroutine waits in it, markFreed
// returns false and changes nothing. A goroutine that has called Wait, but does not wait yet, gets ErrAbort.
func (e *EVD) markFreed() bool {
	e.ia.a.feedMu.Lock()
	defer e.ia.a.feedMu.Unlock()
	if !e.refs.free() || e.userState.Load() == heldByWaiter {
		return false
	}
	e.state.Store(evdFreed)
	return true
}

// queue returns the queue in which an engine puts its completions, by the engine's index. For a nil e it returns nil.
func (e *EVD) queue(engine int) *wire.Queue {
	if e == nil {
		return nil
	}
	return e.queues[engine]
}
