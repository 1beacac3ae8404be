//go:build !race

package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// judge checks what can only be checked at the end of the scenario.
func (s *sim) judge() {
	for _, e := range s.ends {
		if e.void {
			continue
		}
		if !e.dead {
			e.judgeEnd()
			e.judgeWork()
			e.judgeWindow()
		}
		if e.peer != nil && (e.up || e.side == 0) {
			e.judgeMemory()
		}
	}
}

// judgeEnd checks that the history of a connection explains the event with which it has ended.
func (e *end) judgeEnd() {
	s := e.s
	ok := map[Kind]bool{
		KindDisconnected: s.hungUp || s.starved || s.timedOut || !e.up && s.gaveUp,
		KindBroken:       s.excused(),
		KindPeerRejected: !e.up && e.side == 0 && s.plan.manner == rejects,
		KindRefused:      !e.up && e.side == 0 && (s.plan.manner == refuses || s.plan.manner == absent),
		KindTimedOut:     !e.up && e.side == 0 && e.mayTimeOut(),
		KindAcceptFailed: !e.up && e.side == 1 && (s.shaken || !s.active.up || s.active.peer != e),
	}
	switch {
	case !e.over:
		e.fail("was not ended")
	case !ok[e.kind]:
		e.fail("ended with event %d (up %v) in %+v", e.kind, e.up, s.cause())
	case e.up && e.s.plan.manner != accepts:
		e.fail("established though the service %v", e.s.plan.manner)
	}
}

// cause lists what may have ended a connection.
func (s *session) cause() string {
	return fmt.Sprintf("trouble %v, shaken %v, evil %v, starved %v, hung up %v, gave up %v, timed out %v",
		s.trouble, s.shaken, s.evil, s.starved, s.hungUp, s.gaveUp, s.timedOut)
}

// The method excused reports whether the scenario explains that a connection broke. The conditions trouble, evil and
// starved explain it on their own. Lost packets (shaken) explain it only if one side has ended its connection: that
// side repeats Close a few times only. If all these packets are lost, the other side gets no answer any more and breaks
// its connection.
func (s *session) excused() bool {
	return s.trouble || s.evil || s.starved || s.shaken && (s.hungUp || s.timedOut || s.gaveUp)
}

// mayTimeOut reports whether an attempt may take longer than its limit. In secure mode, the peer makes no second request of
// an attempt, even if it has ended the first one.
func (e *end) mayTimeOut() bool {
	s := e.s
	return s.sim.w.keys != nil && (s.gaveUp || s.hungUp) || s.trouble || s.plan.manner == ignores || s.plan.timeout < 5*time.Second ||
		e.h.dozed || e.sim.hosts[s.circuit.host[1]].dozed
}

// judgeWork checks that all posted work has completed with the right status.
func (e *end) judgeWork() {
	e.settleTo(len(e.reqs))
	if e.recvDone != e.recvPosted {
		e.fail("%d of %d receives were completed", e.recvDone, e.recvPosted)
	}
	blame, sent := 0, 0
	for i := range e.reqs {
		q := &e.reqs[i]
		if !e.mayEnd(q) {
			e.fail("request %d %v in %s", i, q, e.s.cause())
		}
		if q.status > StatusFlushed {
			blame++
		}
		if q.status == StatusSuccess && (q.op == OpSend || q.op == OpWriteImm) {
			sent++
		}
	}
	if blame > 1 {
		e.fail("%d requests have the blame", blame)
	}
	if e.peer != nil && sent > e.peer.received {
		e.fail("%d sends succeeded, the peer received %d", sent, e.peer.received)
	}
}

// judgeWindow checks that no failed bind still pins memory.
func (e *end) judgeWindow() {
	if e.win.Free(); e.target.pins.Load() != 0 {
		e.fail("%d binds keep memory", e.target.pins.Load())
	}
}

// mayEnd reports whether the history of the connection explains the status of a request.
func (e *end) mayEnd(q *request) bool {
	s := e.s
	switch q.status {
	case StatusSuccess:
		return !q.late && !q.evil
	case StatusFlushed:
		return q.late || s.excused() || s.timedOut || e.hung && !e.polite || e.peer != nil && e.peer.hung
	case StatusTransport:
		return s.trouble || s.shaken && s.hungUp
	case StatusNotReady:
		return (q.op == OpSend || q.op == OpWriteImm) && (s.starved || s.trouble)
	case StatusRemoteAccess:
		return q.evil && q.op != OpSend
	case StatusRemoteResponder:
		return q.evil && q.op == OpSend
	default:
		return false
	}
}

// judgeMemory checks that the peer's memory contains the writes that were executed. All writes that succeeded were
// executed. After them, any number of the other writes may have been executed in posting order, and the last of these
// may be incomplete.
func (e *end) judgeMemory() {
	e.judgeWord()
	got := e.peer.target.mem
	model := make([]byte, len(got))
	n := 0
	for ; n < len(e.writes) && e.reqs[e.writes[n]].status == StatusSuccess && e.reqs[e.writes[n]].settled; n++ {
		q := &e.reqs[e.writes[n]]
		copy(model[q.to:], q.bytes())
	}
	wrong := 0
	for i := range got {
		if got[i] != model[i] {
			wrong++
		}
	}
	for i := n; i < len(e.writes) && wrong > 0; i++ {
		wrong = more(&e.reqs[e.writes[i]], model, got, wrong)
	}
	if wrong > 0 {
		e.fail("the peer's memory is not what the first %d to %d writes make it: %d bytes differ", n, len(e.writes), wrong)
	}
}

// judgeWord checks that the peer's word is the result of the executed atomics, and that none was executed twice. All
// atomics that succeeded were executed. After them, any number of the other atomics may have been executed in posting
// order.
func (e *end) judgeWord() {
	got := binary.NativeEndian.Uint64(e.peer.word.mem[8:])
	n := 0
	for n < len(e.atomics) && e.reqs[e.atomics[n]].settled && e.reqs[e.atomics[n]].status == StatusSuccess {
		n++
	}
	if !slices.Contains(e.words[n:], got) {
		e.fail("the peer's word is %#x; %d of %d atomics succeeded, which makes it %#x", got, n, len(e.atomics), e.words[n:])
	}
}

// more applies a write byte by byte until no byte differs. It returns how many bytes still differ.
func more(q *request, model, got []byte, wrong int) int {
	for b, v := range q.bytes() {
		if wrong == 0 {
			break
		}
		at := q.to + b
		if model[at] != got[at] {
			wrong--
		}
		if model[at] = v; v != got[at] {
			wrong++
		}
	}
	return wrong
}
