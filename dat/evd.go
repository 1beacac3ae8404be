package dat

import (
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/wire"
)

// EVD is an event dispatcher (DAT_EVD_HANDLE): a queue of events. Each event is taken by exactly one
// call; those of one stream come out in the order in which they went in.
//
// All its methods may be called by any goroutine; Dequeue and Wait drive the adapter's engines while
// they look. On a dispatcher that was freed, or whose adapter was closed, each returns ErrInvalidHandle.
type EVD struct {
	consumer
	ia    *IA
	flags EVDFlags

	queues []*wire.Queue // one for each engine, in the order of the adapter's drivers
	room   *wire.Room    // what bounds them and slow together; nil where one queue is all there is
	// backlog bounds the connection requests in slow, and is guarded by slowMu; nil where room is.
	backlog *wire.Backlog
	qlen    atomic.Int32
	refs    refs          // endpoints and service points that feed it
	state   atomic.Uint32 // evdFreed, evdAborted

	feeding feedings // guarded by adapter.feeding
	config  atomic.Uint32

	// take serialises consumers and guards what follows; turn is the source that is looked at first, for up
	// to left more events.
	take    sync.Mutex
	turn    int
	left    int
	oldest  []wire.Completion // come before everything in queues
	noldest atomic.Int32

	// slow holds the events that do not come from an engine's queue.
	slowMu      sync.Mutex
	slow        []Event
	nslow       atomic.Int32
	slowNotice  atomic.Uint32 // counts them
	catastrophe bool          // the one event that has a place of its own is in slow

	lost atomic.Bool // an overflow was reported, and the dispatcher has not been empty since

	waiter
	notifier
}

const (
	evdFreed   = 1
	evdAborted = 2
)

// EVDState is how a dispatcher is set (DAT_EVD_STATE): one value of each of three bands.
type EVDState uint8

// States of dispatchers.
const (
	EVDStateEnabled    EVDState = 0x01 // notifications trigger the CNO
	EVDStateDisabled   EVDState = 0x02
	EVDStateWaitable   EVDState = 0x04
	EVDStateUnwaitable EVDState = 0x08

	evdStateConfig          EVDState = 0x30
	EVDStateConfigNotify    EVDState = 0x10 // fed by streams with CompletionUnsignalled
	EVDStateConfigSolicited EVDState = 0x20 // fed by receives with CompletionSolicitedWait
	EVDStateConfigThreshold EVDState = 0x30 // all else: every completion counts
)

// Config is the band that the streams which feed the dispatcher decide.
func (s EVDState) Config() EVDState { return s & evdStateConfig }

// EVDParam describes a dispatcher (DAT_EVD_PARAM).
type EVDParam struct {
	IA    *IA
	QLen  int // events that it holds
	State EVDState
	CNO   *CNO // nil for none
	Flags EVDFlags
}

// CreateEVD makes an event dispatcher for qlen events of the given streams, and with EVDCR for qlen connection requests
// beside them, which CreatePSP divides among the peers that ask. It is enabled and waitable (dat_evd_create). All combinations of
// streams are legal. The notification object, which may be nil, is triggered by what arrives.
//
// Errors: ErrInvalidHandle (the CNO is gone or of another IA), ErrInvalidParameter (qlen below 1, no
// stream or an unknown one), ErrInsufficientResources (qlen above IAAttr.MaxEVDQLen).
func (ia *IA) CreateEVD(qlen int, cno *CNO, flags EVDFlags) (*EVD, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	switch {
	case !cno.serves(ia):
		return nil, fail(ErrInvalidHandle, "the notification object is not of this adapter")
	case qlen < 1:
		return nil, fail(ErrInvalidParameter, "queue length %d; it is at least 1", qlen)
	case qlen > maxEVDQLen:
		return nil, fail(ErrInsufficientResources, "queue length %d; the largest is %d", qlen, maxEVDQLen)
	case flags == 0 || flags&^evdAll != 0:
		return nil, fail(ErrInvalidParameter, "event dispatcher flags %#x; use the EVD constants", uint16(flags))
	}
	if err := ia.a.admit(HandleEVD); err != nil {
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
	e.enabled.Store(true)
	if len(ia.a.drivers) > 1 || flags&evdSlow != 0 {
		e.room, e.backlog = wire.NewRoom(qlen), wire.NewBacklog(qlen)
	}
	for range ia.a.drivers {
		q := wire.NewQueue(qlen, e.notified, e.overflow)
		q.Share(e.room)
		e.queues = append(e.queues, q)
	}
	return e
}

// QLen is how many events the dispatcher holds (evd_qlen of dat_evd_query).
func (e *EVD) QLen() int { return int(e.qlen.Load()) }

// Query describes the dispatcher (dat_evd_query).
func (e *EVD) Query() (EVDParam, error) {
	if err := e.usable(); err != nil {
		return EVDParam{}, err
	}
	p := EVDParam{IA: e.ia, QLen: e.QLen(), Flags: e.flags, CNO: e.cno.Load()}
	p.State = EVDState(e.config.Load()) | EVDStateDisabled | EVDStateWaitable
	if e.enabled.Load() {
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

// lock locks the IA of a dispatcher that is usable. The caller unlocks it after success.
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

// abort ends the dispatcher; a waiter returns ErrAbort.
func (e *EVD) abort() {
	e.state.CompareAndSwap(0, evdAborted)
	e.wake.Raise()
}

// Free ends a dispatcher (dat_evd_free); events in it are lost. ErrInvalidState while an endpoint or
// a service point feeds it or a goroutine waits on it. If it was the last of its CNO, that releases its
// waiters. The asynchronous EVD may be freed too: asynchronous errors are dropped from then on.
func (e *EVD) Free() error {
	if err := e.lock(); err != nil {
		return err
	}
	defer e.ia.mu.Unlock()
	if !e.retire() {
		return fail(ErrInvalidState, "the event dispatcher is in use; free what feeds it, and end the waiting")
	}
	if c := e.cno.Swap(nil); c != nil {
		c.leave(e, true)
	}
	for ev := (Event{}); e.popAny(&ev); { // a shared receive queue counts what is taken out
	}
	if e != e.ia.async {
		e.ia.a.dismiss(HandleEVD, 1)
	}
	delete(e.ia.evds, e)
	return nil
}

// retire marks the dispatcher as freed unless it is in use. A waiter that comes at the same time
// returns ErrAbort.
func (e *EVD) retire() bool {
	e.ia.a.feeding.Lock()
	defer e.ia.a.feeding.Unlock()
	if !e.refs.free() || e.held.Load() == heldByWaiter {
		return false
	}
	e.state.Store(evdFreed)
	return true
}

// queue is where the engine with an index puts completions; nil for no dispatcher.
func (e *EVD) queue(engine int) *wire.Queue {
	if e == nil {
		return nil
	}
	return e.queues[engine]
}
