package dat

import "github.com/datxdp/datxdp/wire"

// fairShare is how many events in a row come from one source while others may have some.
const fairShare = 64

// Len is the number of events that wait.
func (e *EVD) Len() int {
	n := int(e.nslow.Load() + e.noldest.Load())
	for _, q := range e.queues {
		n += q.Len()
	}
	return n
}

// Dequeue takes the first event out, driving the engines once if there is none (dat_evd_dequeue). It
// works on disabled and unwaitable dispatchers too. It returns ErrQueueEmpty when there is none then
// either, ErrInvalidState while another goroutine is inside Wait, and ErrInvalidParameter for no event
// to fill. It does not allocate.
func (e *EVD) Dequeue(ev *Event) error {
	if err := e.usable(); err != nil {
		return err
	}
	if ev == nil {
		return ErrInvalidParameter
	}
	if e.held.Load() == heldByWaiter {
		return ErrInvalidState
	}
	if e.pop(ev) {
		return nil
	}
	e.ia.a.engines.Poll()
	if e.pop(ev) {
		return nil
	}
	return ErrQueueEmpty
}

// pop takes the first event of one source out.
func (e *EVD) pop(ev *Event) bool {
	found := e.popAny(ev)
	if !found {
		return false
	}
	if c := e.cno.Load(); c != nil && e.Len() == 0 {
		c.emptied(e)
	}
	if ev.Number&connectionEvent != 0 {
		ev.log()
	}
	return true
}

func (e *EVD) popAny(ev *Event) bool {
	e.take.Lock()
	defer e.take.Unlock()
	var found bool
	if e.room == nil {
		found = e.popFrom(0, ev)
	} else {
		found = e.popOldest(ev) || e.popInTurn(ev)
	}
	if !found && e.lost.Load() {
		e.lost.Store(false) // it is empty: the next overflow is reported again
	}
	return found
}

// popInTurn gives one source after the other a turn.
func (e *EVD) popInTurn(ev *Event) bool {
	for range len(e.queues) + 1 {
		if e.popFrom(e.turn, ev) {
			if e.left--; e.left <= 0 {
				e.nextTurn()
			}
			return true
		}
		e.nextTurn()
	}
	return false
}

// popFrom takes the first event of a source: an engine's queue, or after these the slow one.
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

// popOldest takes the first event of those that were gathered.
func (e *EVD) popOldest(ev *Event) bool {
	if len(e.oldest) == 0 {
		return false
	}
	ev.fill(e, &e.oldest[0])
	e.oldest[0].Settled()
	if e.oldest = e.oldest[1:]; len(e.oldest) == 0 {
		e.oldest = nil
	}
	e.noldest.Add(-1)
	e.room.Give()
	return true
}

// gather puts what an engine has queued before all that comes from now on. It is called when an endpoint
// that feeds the dispatcher, which may be nil, goes on with another engine: its events stay in order.
func (e *EVD) gather(engine int) {
	if e == nil || len(e.queues) == 1 {
		return
	}
	e.take.Lock()
	defer e.take.Unlock()
	var c wire.Completion
	for e.queues[engine].Move(&c) {
		e.oldest = append(e.oldest, c)
		e.noldest.Add(1)
	}
}

func (e *EVD) nextTurn() {
	e.left = fairShare
	if e.turn++; e.turn > len(e.queues) {
		e.turn = 0
	}
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
	if ev.Number == EventAsyncIACatastrophic {
		e.catastrophe = false
	} else {
		e.givePlace(ev)
	}
	return true
}

// takePlace takes a place for an event of slow; false when there is none for it. Requests have places of their own: a burst of
// them costs the consumer no completion. It is called with slowMu held.
func (e *EVD) takePlace(ev *Event) bool {
	if ev.Number == EventConnectionRequest {
		return e.backlog.Take(ev.CR.req.From.Addr())
	}
	return e.room.Take()
}

// givePlace gives back what takePlace took. It is called with slowMu held.
func (e *EVD) givePlace(ev *Event) {
	if ev.Number == EventConnectionRequest {
		e.backlog.Give(ev.CR.req.From.Addr())
	} else {
		e.room.Give()
	}
}

// post adds an event that does not come from an engine's queue, a notification; false when the
// dispatcher is full, or its backlog for the address of a request.
func (e *EVD) post(ev Event) bool { return e.postAfter(ev, func() {}) }

// postAfter is post that calls first when there is a place for the event, and before anybody can take it.
func (e *EVD) postAfter(ev Event, first func()) bool {
	e.slowMu.Lock()
	took := e.takePlace(&ev)
	if took {
		first()
		e.add(ev)
	}
	e.slowMu.Unlock()
	if took {
		e.notified()
	}
	return took
}

// add is called with slowMu held.
func (e *EVD) add(ev Event) {
	ev.EVD = e
	e.slow = append(e.slow, ev)
	e.nslow.Add(1)
	e.slowNotice.Add(1)
}

// PostSE adds an EventSoftware that carries a value of the consumer's (dat_evd_post_se). It is a
// notification. Errors: ErrInvalidParameter for a dispatcher without EVDSoftware, ErrQueueFull, which is
// no overflow: nothing is lost and no asynchronous event follows.
func (e *EVD) PostSE(pointer any) error {
	if err := e.usable(); err != nil {
		return err
	}
	if e.flags&EVDSoftware == 0 {
		return ErrInvalidParameter
	}
	if !e.post(Event{Number: EventSoftware, Software: pointer}) {
		return ErrQueueFull
	}
	return nil
}

// overflow reports that events are lost: once until the consumer has emptied the dispatcher.
func (e *EVD) overflow() {
	if !e.lost.Swap(true) {
		e.ia.raise(EventAsyncEVDOverflow, e, ReasonEVDOverflow)
	}
}

// raise reports an asynchronous error on the asynchronous EVD; without one it is dropped. If that is
// full, errors of the adapter go unheard, which is a catastrophe: EventAsyncIACatastrophic follows what is
// queued, in a place kept for it. Any goroutine may call it.
func (ia *IA) raise(n EventNumber, source any, reason int) {
	e := ia.async
	if e.usable() != nil || e.post(Event{Number: n, Source: source, Reason: reason}) {
		return
	}
	e.slowMu.Lock()
	first := !e.catastrophe
	if first {
		e.catastrophe = true
		e.add(Event{Number: EventAsyncIACatastrophic, Source: ia, Reason: ReasonIACatastrophic})
	}
	e.slowMu.Unlock()
	if first {
		e.notified()
	}
}

// Resize makes it a dispatcher for qlen events (dat_evd_resize). No event is lost and their order stays.
// It is slow: the engines stand still meanwhile. Errors: ErrInvalidParameter (qlen below 1 or above
// IAAttr.MaxEVDQLen), ErrInvalidState (more events are queued, or a goroutine waits).
func (e *EVD) Resize(qlen int) error {
	if err := e.lock(); err != nil {
		return err
	}
	defer e.ia.mu.Unlock()
	if qlen < 1 || qlen > maxEVDQLen {
		return fail(ErrInvalidParameter, "queue length %d; it may be 1 to %d", qlen, maxEVDQLen)
	}
	if !e.held.CompareAndSwap(heldByNone, heldByResize) {
		return fail(ErrInvalidState, "a goroutine waits on the event dispatcher")
	}
	defer e.held.Store(heldByNone)
	return e.ia.a.halted(func() error { return e.resize(qlen) })
}

// occupied is how many places of a queue length are taken: by requests, or by all other events. It is called with slowMu held.
func (e *EVD) occupied() int {
	requests := 0
	for i := range e.slow {
		if e.slow[i].Number == EventConnectionRequest {
			requests++
		}
	}
	return max(requests, e.Len()-requests)
}

// resize is called with every engine owned.
func (e *EVD) resize(qlen int) error {
	e.take.Lock()
	defer e.take.Unlock()
	e.slowMu.Lock()
	defer e.slowMu.Unlock()
	if n := e.occupied(); n > qlen {
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
