package dat

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// dequeueState has the state of the consumers of a dispatcher. The consumers take events from several sources,
// round-robin. A source is one of EVD.queues, or slowEvents.slow. takeMu serialises the consumers and guards the other
// fields.
type dequeueState struct {
	takeMu      sync.Mutex
	nextSource  int               // index of the source to take from next (see popFrom)
	sourceQuota int               // events that may still be taken from nextSource before the source after it follows
	gathered    []wire.Completion // completions from gatherFrom, which are taken before the completions in queues
	numGathered atomic.Int32      // len(gathered)
}

// slowEvents is the queue of software events, connection requests and asynchronous events. slowMu guards the fields
// slow, catastropheQueued and notices.
type slowEvents struct {
	slowMu            sync.Mutex
	slow              list.List                // of *Event, the oldest first
	nslow             atomic.Int32             // slow.Len()
	numSlowNotices    atomic.Uint32            // counts the events that were added to slow
	catastropheQueued bool                     // slow has an EventAsyncIACatastrophic, which has a slot of its own
	notices           map[notice]*list.Element // the EventAsyncEPBroken in slow, which have slots of their own
}

// fairShare is the number of events that consumers take in a row from one source before they look at the next source.
const fairShare = 64

// Len returns the number of queued events.
func (e *EVD) Len() int {
	n := int(e.nslow.Load() + e.numGathered.Load())
	for _, q := range e.queues {
		n += q.Len()
	}
	return n
}

// Dequeue takes the first event (dat_evd_dequeue). If no event is queued, Dequeue polls the engines once and looks
// again. It works on disabled and unwaitable dispatchers too, and it does not allocate. Errors: ErrQueueEmpty (no
// event), ErrInvalidState (another goroutine is inside Wait), ErrInvalidParameter (ev is nil).
func (e *EVD) Dequeue(ev *Event) error {
	if err := e.usable(); err != nil {
		return err
	}
	if ev == nil {
		return ErrInvalidParameter
	}
	if e.userState.Load() == heldByWaiter {
		return ErrInvalidState
	}
	if e.dequeue(ev) {
		return nil
	}
	e.ia.a.engines.Poll()
	if e.dequeue(ev) {
		return nil
	}
	return ErrQueueEmpty
}

// dequeue takes the next event. It returns false if no event is queued. If the event was the last, dequeue drops the
// trigger of e that the CNO may keep for its next Wait.
func (e *EVD) dequeue(ev *Event) bool {
	found := e.popAny(ev)
	if !found {
		return false
	}
	if c := e.cno.Load(); c != nil && e.Len() == 0 {
		c.forgetIfEmpty(e)
	}
	switch {
	case ev.Number&connectionEvent != 0:
		ev.log()
	case ev.Status != DTOSuccess:
		ev.EP.logBroken()
	}
	return true
}

// popAny takes the next event: the gathered completions first, then events of the sources.
func (e *EVD) popAny(ev *Event) bool {
	e.takeMu.Lock()
	defer e.takeMu.Unlock()
	var found bool
	if e.room == nil {
		found = e.popFrom(0, ev)
	} else {
		found = e.popGathered(ev) || e.popInTurn(ev)
	}
	if !found && e.overflowReported.Load() {
		e.overflowReported.Store(false) // the dispatcher is empty: report the next overflow again
	}
	return found
}

// popInTurn takes the next event of the sources, round-robin: up to fairShare events in a row from one source.
func (e *EVD) popInTurn(ev *Event) bool {
	for range len(e.queues) + 1 {
		if e.popFrom(e.nextSource, ev) {
			if e.sourceQuota--; e.sourceQuota <= 0 {
				e.nextTurn()
			}
			return true
		}
		e.nextTurn()
	}
	return false
}

// popFrom takes the first event of a source. Source i is queues[i]; source len(queues) is slow.
func (e *EVD) popFrom(source int, ev *Event) bool {
	if source == len(e.queues) {
		return e.nslow.Load() > 0 && e.popSlow(ev)
	}
	var c wire.Completion
	if !e.queues[source].Pop(&c) {
		return false
	}
	ev.fill(e, &c)
	return true
}

// popGathered takes the first gathered completion.
func (e *EVD) popGathered(ev *Event) bool {
	if len(e.gathered) == 0 {
		return false
	}
	ev.fill(e, &e.gathered[0])
	e.gathered[0].Settled()
	e.gathered[0] = wire.Completion{} // the array must not keep its connection alive
	if e.gathered = e.gathered[1:]; len(e.gathered) == 0 {
		e.gathered = nil
	}
	e.numGathered.Add(-1)
	e.room.Give()
	return true
}

// gatherFrom moves the queued completions of an engine to gathered, so that consumers take these completions first. It
// is called when an endpoint that feeds e moves to another engine: events of the new engine must not overtake events of
// the old engine. If e is nil, gatherFrom does nothing.
func (e *EVD) gatherFrom(engine int) {
	if e == nil || len(e.queues) == 1 {
		return
	}
	e.takeMu.Lock()
	defer e.takeMu.Unlock()
	var c wire.Completion
	for e.queues[engine].Move(&c) {
		e.gathered = append(e.gathered, c)
		e.numGathered.Add(1)
	}
}

func (e *EVD) nextTurn() {
	e.sourceQuota = fairShare
	if e.nextSource++; e.nextSource > len(e.queues) {
		e.nextSource = 0
	}
}

func (e *EVD) popSlow(ev *Event) bool {
	e.slowMu.Lock()
	defer e.slowMu.Unlock()
	first := e.slow.Front()
	if first == nil {
		return false
	}
	*ev = *e.removeSlow(first)
	switch ev.Number {
	case EventAsyncIACatastrophic:
		e.catastropheQueued = false
	case EventAsyncEPBroken:
		delete(e.notices, notice{ev.Source, ev.Reason})
	default:
		e.giveSlot(ev)
	}
	return true
}

// takeSlot reserves a slot, which is room for one event, before an event is added to slowEvents.slow. It returns false
// if no slot is free. Connection requests have slots of their own, so a burst of connection requests cannot cause
// completions to be lost. slowMu is held.
func (e *EVD) takeSlot(ev *Event) bool {
	if ev.Number == EventConnectionRequest {
		return e.backlog.Take(ev.CR.req.From.Addr())
	}
	return e.room.Take()
}

// giveSlot frees the slot that takeSlot reserved. slowMu is held.
func (e *EVD) giveSlot(ev *Event) {
	if ev.Number == EventConnectionRequest {
		e.backlog.Give(ev.CR.req.From.Addr())
	} else {
		e.room.Give()
	}
}

// enqueue appends an event to slowEvents.slow and delivers a notification. It returns false if no slot is free. For a
// connection request, it also returns false if the requester's address or network has as many requests in the backlog
// as CreatePSP allows.
func (e *EVD) enqueue(ev Event) bool { return e.enqueueWith(ev, func() {}) }

// enqueueWith is enqueue with a callback, beforeVisible. It calls beforeVisible after it has reserved a slot, and
// before a consumer can take the event. If no slot is free, it returns false and does not call beforeVisible.
func (e *EVD) enqueueWith(ev Event, beforeVisible func()) bool {
	e.slowMu.Lock()
	reserved := e.takeSlot(&ev)
	if reserved {
		beforeVisible()
		e.appendSlow(ev)
	}
	e.slowMu.Unlock()
	if reserved {
		e.onNotification()
	}
	return reserved
}

// appendSlow appends an event to slow. slowMu is held.
func (e *EVD) appendSlow(ev Event) *list.Element {
	ev.EVD = e
	e.nslow.Add(1)
	e.numSlowNotices.Add(1)
	return e.slow.PushBack(&ev)
}

// removeSlow takes an event out of slow. slowMu is held.
func (e *EVD) removeSlow(at *list.Element) *Event {
	e.nslow.Add(-1)
	return e.slow.Remove(at).(*Event)
}

// PostSE queues an EventSoftware that carries value in Event.Software (dat_evd_post_se). The event is a notification.
// Errors: ErrInvalidParameter (the dispatcher was created without EVDSoftware), ErrQueueFull. ErrQueueFull does not
// count as an overflow: no queued event is lost, and no asynchronous event follows.
func (e *EVD) PostSE(value any) error {
	if err := e.usable(); err != nil {
		return err
	}
	if e.flags&EVDSoftware == 0 {
		return ErrInvalidParameter
	}
	if !e.enqueue(Event{Number: EventSoftware, Software: value}) {
		return ErrQueueFull
	}
	return nil
}

// reportOverflow is called when events are lost. It queues one asynchronous event. The next such event can follow only
// after the consumer has emptied the dispatcher.
func (e *EVD) reportOverflow() {
	if !e.overflowReported.Swap(true) {
		e.ia.postAsync(EventAsyncEVDOverflow, e, ReasonEVDOverflow)
	}
}

// postAsync queues an asynchronous event on the asynchronous EVD. If the IA has no such EVD, the event is dropped. If
// the EVD is full, an EventAsyncIACatastrophic is queued instead of the event, to report that asynchronous events were
// lost. The EVD always has room for one EventAsyncIACatastrophic. Any goroutine may call postAsync.
func (ia *IA) postAsync(n EventNumber, source any, reason int) {
	e := ia.async
	if e.usable() != nil || e.enqueue(Event{Number: n, Source: source, Reason: reason}) {
		return
	}
	e.slowMu.Lock()
	first := !e.catastropheQueued
	if first {
		e.catastropheQueued = true
		e.appendSlow(Event{Number: EventAsyncIACatastrophic, Source: ia, Reason: ReasonIACatastrophic})
	}
	e.slowMu.Unlock()
	if first {
		e.onNotification()
	}
}

// Resize changes the queue length to qlen events (dat_evd_resize). No event is lost, and the order of the events stays
// the same. Resize is slow, because it stops all engines of the adapter while it works. Errors: ErrInvalidParameter
// (qlen below 1 or above IAAttr.MaxEVDQLen), ErrInvalidState (more than qlen events are queued, or a goroutine is
// inside Wait).
func (e *EVD) Resize(qlen int) error {
	if err := e.lock(); err != nil {
		return err
	}
	defer e.ia.mu.Unlock()
	if qlen < 1 || qlen > maxEVDQLen {
		return fail(ErrInvalidParameter, "queue length %d; it may be 1 to %d", qlen, maxEVDQLen)
	}
	if !e.userState.CompareAndSwap(heldByNone, heldByResize) {
		return fail(ErrInvalidState, "a goroutine waits on the event dispatcher")
	}
	defer e.userState.Store(heldByNone)
	return e.ia.a.runHalted(func() error { return e.resize(qlen) })
}

// minQLen returns the smallest queue length that suffices for the queued events. Connection requests, notices and other
// events have separate slots. So the result is the number of queued connection requests or the number of other queued
// events without the notices, whichever is larger. slowMu is held.
func (e *EVD) minQLen() int {
	requests := 0
	for at := e.slow.Front(); at != nil; at = at.Next() {
		if at.Value.(*Event).Number == EventConnectionRequest {
			requests++
		}
	}
	return max(requests, e.Len()-requests-len(e.notices))
}

// resize changes the queue length. The caller owns every engine.
func (e *EVD) resize(qlen int) error {
	e.takeMu.Lock()
	defer e.takeMu.Unlock()
	e.slowMu.Lock()
	defer e.slowMu.Unlock()
	if n := e.minQLen(); n > qlen {
		return fail(ErrInvalidState, "%d events are queued; a queue length of %d would lose some", n, qlen)
	}
	for _, q := range e.queues {
		q.Resize(qlen)
	}
	if e.room != nil {
		e.room.Resize(qlen)
		e.backlog.Resize(qlen)
	}
	e.qlen.Store(int32(qlen))
	return nil
}
