package dat

import (
	"container/list"

	"github.com/datxdp/datxdp/wire"
)

// notice identifies an EventAsyncEPBroken: its endpoint and its reason.
type notice struct {
	ep     any // Event.Source
	reason int
}

// onNotice is called with n, a notice of package wire about an endpoint with a shared receive queue. It queues an
// asynchronous event that reports the notice. For a freed endpoint, it does nothing. The owner of the engine calls
// onNotice.
func (ep *EP) onNotice(n wire.Notice) {
	switch {
	case ep.freed.Load():
	case n == wire.NoticeHigh:
		ep.postNotice(ReasonSRQSoftHighWatermark)
	case n == wire.NoticeEnd:
		ep.postNotice(ReasonEPTransferToError)
	}
}

// postNotice queues an EventAsyncEPBroken on the asynchronous EVD. The peer causes these events: it ends connections
// when it likes. So they do not take the slots of other events. The number of endpoints limits their number: while an
// event for an endpoint and a reason is queued, postNotice queues no other, and Free removes the events of its endpoint.
func (ep *EP) postNotice(reason int) {
	e, n := ep.ia.async, notice{ep, reason}
	if e.usable() != nil {
		return
	}
	e.slowMu.Lock()
	queued := e.notices[n] != nil
	if !queued {
		if e.notices == nil {
			e.notices = make(map[notice]*list.Element)
		}
		e.notices[n] = e.appendSlow(Event{Number: EventAsyncEPBroken, Source: ep, Reason: reason})
	}
	e.slowMu.Unlock()
	if !queued {
		e.onNotification()
	}
}

// dropNotices removes the queued EventAsyncEPBroken of a freed endpoint. Otherwise a program that does not read the
// asynchronous EVD would keep every endpoint that it has freed. The endpoint's engine sends no more notices.
func (ep *EP) dropNotices() {
	e := ep.ia.async
	if ep.srq == nil || e == nil {
		return
	}
	e.slowMu.Lock()
	for _, reason := range []int{ReasonEPTransferToError, ReasonSRQSoftHighWatermark} {
		n := notice{ep, reason}
		if at := e.notices[n]; at != nil {
			delete(e.notices, n)
			e.removeSlow(at)
		}
	}
	e.slowMu.Unlock()
	if c := e.cno.Load(); c != nil && e.Len() == 0 {
		c.forgetIfEmpty(e)
	}
}
