//go:build !race

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// request is a posted request and its expected result.
type request struct {
	op      Op
	flags   WorkFlags
	n       int
	from    int // read: offset at the peer; otherwise offset in the pool
	to      int // write: offset in the target
	slot    int // read: place in sink
	own     bool
	evil    bool // names memory that the peer does not give access to
	late    bool // posted after the end of the connection
	settled bool
	status  Status
	want    []byte // read of the target: expected bytes
	unsure  []bool // which bytes of want may also be newer
	imm     uint32
	old     uint64 // atomic: expected old value
	new     uint64 // atomic: value afterwards
}

func (q *request) String() string {
	return fmt.Sprintf("{op %d, flags %#x, %d bytes from %d to %d, evil %v, late %v, status %d}",
		q.op, q.flags, q.n, q.from, q.to, q.evil, q.late, q.status)
}

// bytes returns the data of a send or a write.
func (q *request) bytes() []byte { return pool[q.from : q.from+q.n] }

// posted enters a request into the model.
func (e *end) posted(q *request) {
	i := len(e.reqs)
	if q.flags&Fence != 0 {
		e.fence = i
	}
	e.s.evil = e.s.evil || q.evil && !q.late
	switch q.op {
	case OpSend:
		e.sends = append(e.sends, i)
	case OpWrite, OpWriteImm:
		if q.op == OpWriteImm {
			e.sends = append(e.sends, i)
		}
		if !q.evil {
			e.writes = append(e.writes, i)
			e.write(i, q)
		}
	case OpFetchAdd, OpCmpSwap:
		e.free = e.free[:len(e.free)-1]
		if !q.evil {
			e.atomics = append(e.atomics, i)
			e.words = append(e.words, q.new)
		}
	case OpRead:
		e.free = e.free[:len(e.free)-1]
		if q.own && !q.evil {
			q.want = bytes.Clone(e.model[q.from : q.from+q.n])
			q.unsure = make([]bool, q.n)
			e.lookups = append(e.lookups, i)
		}
	case OpBind: // a bind changes nothing at the peer
	case OpRecv, OpRecvInvalidate, OpRecvImm: // not requests
	}
	e.reqs = append(e.reqs, *q)
}

// write applies a write to the model. An earlier read may return the new bytes too, unless a fence is between them.
func (e *end) write(i int, q *request) {
	copy(e.model[q.to:], q.bytes())
	for b := q.to; b < q.to+q.n; b++ {
		e.last[b] = int32(i + 1)
	}
	for _, l := range e.lookups {
		r := &e.reqs[l]
		if l < e.fence {
			continue
		}
		for b := max(q.to, r.from); b < min(q.to+q.n, r.from+r.n); b++ {
			r.unsure[b-r.from] = true
		}
	}
}

// indexOf checks the cookie of a completion and returns the index in it.
func (e *end) indexOf(c *Completion) int {
	if c.Cookie>>32 != uint64(e.id) {
		e.fail("completion %+v is of another connection", *c)
	}
	return int(uint32(c.Cookie))
}

// tookRequest checks the completion of a request.
func (e *end) tookRequest(c *Completion) {
	i := e.indexOf(c)
	if i < e.settled || i >= len(e.reqs) {
		e.fail("completion %+v of request %d, the next is %d of %d", *c, i, e.settled, len(e.reqs))
	}
	e.settleTo(i)
	q := &e.reqs[i]
	switch {
	case c.Op != q.op:
		e.fail("completion %+v of request %d %v has the wrong operation", *c, i, q)
	case c.Status == StatusSuccess && (q.flags&Suppress != 0 || int(c.Length) != q.n || q.late):
		e.fail("completion %+v of request %d %v", *c, i, q)
	case c.Status != StatusSuccess && e.c.State() != Closed && !e.over:
		e.fail("request %d %v ended with status %d on a connection in state %d", i, q, c.Status, e.c.State())
	case c.Status == StatusNotReady && e.peer.hesitates():
		e.s.starved = true
	}
	e.settle(i, c.Status)
}

// settleTo settles the requests before request i, which succeeded without a completion.
func (e *end) settleTo(i int) {
	for ; e.settled < i; e.settle(e.settled, StatusSuccess) {
		if q := &e.reqs[e.settled]; q.flags&Suppress == 0 || e.failed {
			e.fail("request %d %v was not completed before request %d", e.settled, q, i)
		}
	}
}

// settle records the status of the next request and checks its effect.
func (e *end) settle(i int, s Status) {
	q := &e.reqs[i]
	q.settled, q.status = true, s
	e.settled = i + 1
	if q.op.hasResponse() {
		e.free = append(e.free, q.slot)
		if len(e.lookups) > 0 && e.lookups[0] == i {
			e.lookups = e.lookups[1:]
		}
	}
	switch {
	case s != StatusSuccess:
		e.failed = true
	case e.failed:
		e.fail("request %d %v succeeded after one that did not", i, q)
	case q.evil:
		e.fail("request %d %v succeeded", i, q)
	case q.op == OpWrite || q.op == OpWriteImm:
		e.written(i, q)
	case q.op == OpRead:
		e.looked(i, q)
	case q.op == OpFetchAdd || q.op == OpCmpSwap:
		if got := binary.NativeEndian.Uint64(e.sink.mem[q.slot*e.slot:]); got != q.old {
			e.fail("atomic %d %v brought %#x, want %#x", i, q, got, q.old)
		}
	}
}

// written checks that a write is in the peer's memory, except where a later write covers it.
func (e *end) written(i int, q *request) {
	got := e.peer.target.mem[q.to : q.to+q.n]
	for b, want := range q.bytes() {
		if got[b] != want && e.last[q.to+b] == int32(i+1) {
			e.fail("request %d %v succeeded, but byte %d at the peer is %#x, want %#x", i, q, b, got[b], want)
		}
	}
}

// looked checks the bytes that a read returned.
func (e *end) looked(i int, q *request) {
	got := e.sink.mem[q.slot*e.slot:][:q.n]
	want := q.want
	if !q.own {
		want = q.bytes()
	}
	for b := range got {
		if got[b] != want[b] && (q.unsure == nil || !q.unsure[b]) {
			e.fail("read %d %v brought %#x as byte %d, want %#x", i, q, got[b], b, want[b])
		}
	}
}

// tookRecv checks the completion of a receive and its message.
func (e *end) tookRecv(c *Completion) {
	i := e.indexOf(c)
	if i != e.recvDone || i >= e.recvPosted {
		e.fail("completion %+v of receive %d, the next is %d of %d", *c, i, e.recvDone, e.recvPosted)
	}
	e.recvDone++
	switch c.Status {
	case StatusSuccess:
		if e.recvEnd {
			e.fail("receive %d was filled after one was not", i)
		}
		e.message(i, c)
		return
	case StatusFlushed:
	case StatusLocalLength:
		if !e.s.evil || e.recvEnd {
			e.fail("receive %d: %+v", i, *c)
		}
	default:
		e.fail("receive %d: %+v", i, *c)
	}
	e.recvEnd = true
	if e.c.State() != Closed && !e.over {
		e.fail("receive %d ended with status %d in state %d", i, c.Status, e.c.State())
	}
}

func (e *end) message(i int, c *Completion) {
	e.meet()
	if e.received >= len(e.peer.sends) {
		e.fail("message %d was never sent", e.received)
	}
	q := &e.peer.reqs[e.peer.sends[e.received]]
	if (c.Op == OpRecvImm) != (q.op == OpWriteImm) {
		e.fail("completion %+v of what was sent as %v", *c, q)
	}
	if c.Op == OpRecvImm {
		e.immediate(q, c)
		return
	}
	got := e.inbox.mem[i%e.cfg.MaxRecv*e.slot:][:c.Length]
	if q.evil || !bytes.Equal(got, q.bytes()) {
		e.fail("message %d has %d bytes that are not those of %v", e.received, len(got), q)
	}
	if (c.Flags^q.flags)&Solicited != 0 {
		e.fail("message %d came with flags %#x, was sent with %#x", e.received, c.Flags, q.flags)
	}
	e.received++
}

// The method immediate checks the completion of a write with immediate data: the data of this write and of all earlier
// writes must be in place. It skips the writes that an earlier completion has confirmed.
func (e *end) immediate(q *request, c *Completion) {
	if q.evil || c.Data != q.imm || int(c.Length) != q.n || (c.Flags^q.flags)&Solicited != 0 {
		e.fail("message %d: %+v, was sent as %v with %#x", e.received, *c, q, q.imm)
	}
	for done := false; !done && e.seen < len(e.peer.writes); e.seen++ {
		i := e.peer.writes[e.seen]
		e.peer.written(i, &e.peer.reqs[i])
		done = i == e.peer.sends[e.received]
	}
	e.received++
}

// meet finds the passive end of the active end.
func (e *end) meet() {
	if e.peer != nil {
		return
	}
	p := e.c.PeerPrivate()
	if len(p) < 8 || binary.BigEndian.Uint64(p) >= uint64(len(e.s.passives)) || !bytes.Equal(p[8:], e.s.private) {
		e.fail("accepted with private data %x", p)
	}
	e.peer = e.s.passives[binary.BigEndian.Uint64(p)]
}

// event handles a connection event.
func (e *end) event(k Kind) {
	e.sim.note("%v: event %d", e, k)
	switch {
	case e.over:
		e.fail("event %d after event %d", k, e.kind)
	case k == KindEstablished && e.up:
		e.fail("established twice")
	case k == KindEstablished:
		e.established()
	default:
		e.ended(k)
	}
}

func (e *end) established() {
	e.meet()
	e.up, e.upAt, e.deadline = true, e.sim.now(), 0
	if st := e.peer.c.State(); !e.peer.up && (st == Idle || st == Accepting) {
		e.fail("established before the passive side")
	}
	for _, o := range e.s.passives {
		if e.side == 1 && o != e && o.up {
			e.fail("established, as %v was", o)
		}
	}
	if e.s.severed || e.peer.over || e.peer.dead {
		e.mustEnd()
	}
}

// ended handles the last event of an end. Work posted afterwards is flushed.
func (e *end) ended(k Kind) {
	e.over, e.kind = true, k
	if got := e.c.State(); got != Closed {
		e.fail("event %d in state %d", k, got)
	}
	if k == KindTimedOut {
		e.s.timedOut = true
		if wait := time.Duration(e.sim.now() - e.s.dialled); wait < e.s.plan.timeout {
			e.fail("timed out after %v, not %v", wait, e.s.plan.timeout)
		}
	}
	if k == KindPeerRejected && !bytes.Equal(e.c.PeerPrivate(), e.s.private) {
		e.fail("rejected with private data %x", e.c.PeerPrivate())
	}
	e.s.gaveUp = e.s.gaveUp || k == KindAcceptFailed
	e.forlorn()
	if e.peer == nil {
		return
	}
	for range e.s.plan.late {
		e.postRequest()
		e.postReceives()
	}
}
