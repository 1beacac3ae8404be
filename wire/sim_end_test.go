//go:build !race

package wire

import (
	"fmt"
	"time"
)

// end is one end of a connection: what its consumer has posted, and which completions it got.
type end struct {
	s    *session
	sim  *sim
	h    *simHost
	n    *node // node of the connection
	c    *Conn
	id   int
	side int // 0: active side, 1: passive side
	index,
	evilAt, todo int
	cfg  ConnConfig
	peer *end

	up, over, dead, void bool
	kind                 Kind // event that ended the connection
	upAt, deadline       int64
	hung, polite         bool

	reqs     []request
	settled  int  // requests before this one are settled
	failed   bool // a request has failed
	sends    []int
	writes   []int
	lookups  []int // reads of the peer's target that are not settled
	fence    int   // last request with a fence
	received int   // number of messages received
	seen     int   // number of writes of the peer that immediate data has confirmed
	recvDone int
	recvEnd  bool  // a receive has failed
	recvAt   int64 // when the last receive was posted
	lazy     bool  // a message had to wait longer than NotReady for a receive

	inbox, sink, target memory
	word                memory  // memory for the peer's atomics
	win                 *Window // window on target
	recvPosted          int
	slot                int     // size of one operation's place in inbox and sink
	free                []int   // free places in sink
	model               []byte  // the peer's target after all posted writes
	last                []int32 // for each byte of model: the last write to it, plus 1
	atomics             []int   // requests that are atomics; words holds the peer's word before each and after the last
	words               []uint64
}

func (e *end) String() string {
	return fmt.Sprintf("%v, %s end %d", e.s, [...]string{"active", "passive"}[e.side], e.index)
}

func (e *end) fail(format string, args ...any) {
	e.sim.fail("%v: %s", e, fmt.Sprintf(format, args...))
}

// prepare registers the memory of an end.
func (e *end) prepare() {
	e.slot, e.recvAt = e.sim.sc.maxOp, e.sim.now()
	reads := max(e.cfg.ReadOut, 1)
	size := 2 * e.slot
	e.inbox = e.n.memory(e.cfg.MaxRecv * e.slot)
	e.sink = e.n.memory(reads * e.slot)
	e.target = e.n.memory(size)
	e.word, e.words = e.n.memory(16), []uint64{0}
	e.win = e.n.host.NewWindow(1, chance(e.sim.r, 2), nil)
	e.model = make([]byte, size)
	e.last = make([]int32, size)
	for i := range reads {
		e.free = append(e.free, i)
	}
}

// mustEnd sets the time by which an end must have ended if it hears no more from its peer.
func (e *end) mustEnd() {
	l := e.sim.sc.limits
	if e.up && !e.over && !e.dead {
		by := e.sim.now() + int64(l.KeepAlive+l.GiveUp+l.NotReady+2*time.Second)
		if e.deadline == 0 || by < e.deadline {
			e.deadline = by
		}
	}
}

// forlorn calls mustEnd for each end that had this end as its peer.
func (e *end) forlorn() {
	for _, o := range append(e.s.passives, e.s.active) {
		if o.peer == e {
			o.mustEnd()
		}
	}
}

// watch checks that no end outlives its deadline.
func (s *sim) watch() {
	for _, h := range s.hosts {
		for _, e := range h.live {
			if e.deadline != 0 && s.now() > e.deadline && !e.c.State().settledDown(e.up) && h.dozes < s.now() {
				e.fail("in state %d, should have been done with at %v", e.c.State(), time.Duration(e.deadline))
			}
		}
	}
}

// settledDown reports whether the state of a connection is final: Closed, or established if up is false.
func (s State) settledDown(up bool) bool { return s == Closed || !up && s >= Established }

// act makes the consumer handle one connection. It reports whether the consumer did anything.
func (e *end) act() (acted bool) {
	if e.over {
		return false
	}
	acted = e.postReceives()
	if !e.up {
		return e.lose() || acted
	}
	if e.c.State() == Established {
		for range e.sim.r.IntN(4) {
			if e.todo == 0 || !e.postRequest() {
				break
			}
			e.todo--
			acted = true
		}
	}
	if recv, req := e.c.Idle(); req && (recv || !e.over) {
		e.settleTo(len(e.reqs))
	}
	return e.leave() || acted
}

// lose cancels a connection attempt if the plan says so.
func (e *end) lose() bool {
	p := &e.s.plan
	if e.side != 0 || e.hung || p.cancel == 0 || e.sim.now() < e.s.dialled+int64(p.cancel) {
		return false
	}
	e.disconnect(e.sim.r.IntN(2) == 0)
	return true
}

// leave disconnects if the plan says so.
func (e *end) leave() bool {
	p := &e.s.plan
	switch {
	case e.hung && e.polite && e.c.State() == Draining && chance(e.sim.r, 64):
		e.disconnect(false)
		return true
	case e.hung || !p.leaves[e.side] || e.sim.now() < e.upAt+int64(p.hold):
		return false
	case p.hasty && e.todo > 0, !p.hasty && !e.s.done():
		return false
	}
	e.disconnect(p.polite[e.side])
	return true
}

func (e *end) disconnect(politely bool) {
	e.hung, e.polite, e.s.hungUp = true, politely, true
	e.sim.note("%v disconnects, gracefully %v", e, politely)
	if err := e.n.eng.Disconnect(e.c, politely); err != nil {
		e.fail("disconnecting: %v", err)
	}
}

// done reports whether all work of a connection is done.
func (s *session) done() bool {
	p := s.active.peer
	return s.active.up && p != nil && p.up && s.active.idle() && p.idle()
}

func (e *end) idle() bool {
	_, req := e.c.Idle()
	return e.todo == 0 && req && e.settled == len(e.reqs) && (e.peer.received == len(e.sends) || e.failed)
}

// postReceives posts some receives.
func (e *end) postReceives() (acted bool) {
	for e.recvPosted-e.recvDone < e.cfg.MaxRecv && e.sim.r.IntN(4) != 0 {
		at := e.recvPosted % e.cfg.MaxRecv * e.slot
		kick, err := e.c.PostRecv(e.split(e.inbox, at, e.slot, e.cfg.MaxRecvIOV), e.cookie(e.recvPosted), 0)
		if err != nil {
			e.fail("posting receive %d: %v", e.recvPosted, err)
		}
		e.recvPosted++
		e.lazy = e.hesitates()
		e.recvAt = e.sim.now()
		acted = true
		if kick {
			e.kick()
		}
	}
	return acted
}

// hesitates reports whether the end has once posted no receive for so long that a message may have failed.
func (e *end) hesitates() bool {
	return e.lazy || e.recvAt+int64(e.sim.sc.limits.NotReady) <= e.sim.now()
}

// kick tells the engine of new posts, with Kick or with Ring.
func (e *end) kick() {
	if chance(e.sim.r, 4) {
		e.n.eng.Ring(e.c)
	} else {
		e.n.eng.Kick(e.c)
	}
}

// cookie returns the cookie of request or receive i of the end.
func (e *end) cookie(i int) uint64 { return uint64(e.id)<<32 | uint64(i) }

// split divides a range at random into up to most segments.
func (e *end) split(m memory, off, n, most int) []Segment {
	var s []Segment
	for len(s)+1 < most && n > 0 && chance(e.sim.r, 3) {
		k := e.sim.r.IntN(n)
		s = append(s, m.seg(off, k)...)
		off, n = off+k, n-k
	}
	return append(s, m.seg(off, n)...)
}

// length returns a random length for an operation.
func (e *end) length() int {
	switch most := e.sim.sc.maxOp; e.sim.r.IntN(8) {
	case 0:
		return 0
	case 1, 2, 3:
		return e.sim.r.IntN(most + 1)
	default:
		return e.sim.r.IntN(min(most, 300))
	}
}

// postRequest posts one more request. It reports false if there was no room.
func (e *end) postRequest() bool {
	r := e.sim.r
	q := request{op: pick(r, OpSend, OpSend, OpWrite, OpWrite, OpRead, OpRead, OpWriteImm, OpFetchAdd, OpCmpSwap), n: e.length(), late: e.c.State() == Closed}
	q.from = r.IntN(len(pool) - e.slot)
	for _, f := range []WorkFlags{Suppress, Suppress, Fence, Unsignalled} {
		if chance(r, 8) {
			q.flags |= f
		}
	}
	if (q.op == OpSend || q.op == OpWriteImm) && chance(r, 8) {
		q.flags |= Solicited
	}
	if chance(r, 16) && len(e.reqs) != e.evilAt {
		q.op, q.n = OpBind, 0
	}
	if len(e.reqs) == e.evilAt {
		q.evil, q.n = true, max(q.n, 1)
	}
	if q.op.hasResponse() && len(e.free) == 0 {
		q.op = OpWrite
	}
	err := e.post(&q)
	if err == ErrNoReads {
		q.op = OpWrite
		err = e.post(&q)
	}
	if err == ErrQueueFull {
		return false
	}
	if err != nil {
		e.fail("posting %+v in state %d: %v", q, e.c.State(), err)
	}
	e.posted(&q)
	e.kick()
	return true
}

// post posts a request.
func (e *end) post(q *request) error {
	iov, at, cookie := e.cfg.MaxRequestIOV, q.from, e.cookie(len(e.reqs))
	r := e.sim.r
	switch q.op {
	case OpBind:
		_, err := e.c.PostBind(e.win, e.target.Region, e.target.base, uint32(r.IntN(len(e.model))), RemoteRead, cookie, q.flags)
		return err
	case OpSend:
		n := q.n
		if q.evil {
			q.n, n = e.slot+1, e.slot+1
		}
		return e.c.PostSend(e.split(e.h.source, at, n, iov), cookie, q.flags)
	case OpWrite, OpWriteImm:
		q.to = r.IntN(len(e.model) - q.n + 1)
		iov, to := e.split(e.h.source, at, q.n, iov), e.aim(q, e.peer.target, q.to)
		if q.op == OpWrite {
			return e.c.PostWrite(iov, cookie, to, q.flags)
		}
		q.imm = r.Uint32()
		return e.c.PostWriteImm(iov, cookie, to, q.imm, q.flags)
	case OpFetchAdd, OpCmpSwap:
		return e.postAtomic(q, cookie)
	default:
		q.slot = e.free[len(e.free)-1]
		q.own = chance(r, 2)
		there := e.peer.h.source
		if e.peer.dead {
			there = e.h.source // any memory will do
		}
		if q.own {
			q.from = r.IntN(len(e.model) - q.n + 1)
			there = e.peer.target
		}
		return e.c.PostRead(e.split(e.sink, q.slot*e.slot, q.n, iov), cookie, e.aim(q, there, q.from), uint32(q.n), q.flags)
	}
}

// postAtomic posts an atomic on the peer's word.
func (e *end) postAtomic(q *request, cookie uint64) error {
	r := e.sim.r
	q.slot, q.n = e.free[len(e.free)-1], atomicSize
	q.old = e.words[len(e.words)-1]
	local, at, x := e.sink.seg(q.slot*e.slot, q.n)[0], e.aim(q, e.peer.word, 8), r.Uint64()
	if q.op == OpFetchAdd {
		q.new = q.old + x
		return e.c.PostFetchAdd(x, local, cookie, at, q.flags)
	}
	comp := q.old
	if q.new = x; chance(r, 2) {
		comp, q.new = ^comp, q.old
	}
	return e.c.PostCmpSwap(comp, x, local, cookie, at, q.flags)
}

// The method aim returns the remote address of a request. If the request is meant to fail, its key is wrong or its
// first byte is out of bounds. If only a later byte were out of bounds, the peer could place the bytes before it.
func (e *end) aim(q *request, m memory, off int) Remote {
	to := m.at(off)
	switch {
	case !q.evil:
	case chance(e.sim.r, 2):
		to.Key ^= 1 << e.sim.r.IntN(32)
	default:
		to.Addr = m.base - 1
	}
	return to
}
