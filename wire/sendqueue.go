package wire

import (
	"github.com/datxdp/datxdp/wire/internal/recovery"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// position is a place in the stream of requests, or of answers.
type position = recovery.Position

// sendQueue is the requests of a connection, and how far they are cut into packets. The ring may be posted to by any
// goroutine; what follows it is the engine owner's.
type sendQueue struct {
	workRing
	counted seq.Num  // requests that are counted in unsent
	next    position // what is to be sent
	acked   position // what the peer has acknowledged
	unsent  int      // bytes of requests not sent yet, chunk headers included
	msn     seq.Num  // number of the next message
	binds   bool     // there was a bind among the requests
}

// restart begins a connection with what is posted next.
func (q *sendQueue) restart() {
	done := seq.Num(q.done.Load())
	q.counted, q.next, q.acked = done, position{Op: done}, position{Op: done}
	q.unsent, q.msn, q.binds = 0, 0, false
}

// count adds newly posted requests to what is unsent, and returns how many there are.
func (q *sendQueue) count() (n int) {
	for posted := seq.Num(q.posted.Load()); q.counted != posted; q.counted++ {
		w := q.at(q.counted)
		q.unsent += headerOf(w)
		if !w.op.hasResponse() {
			q.unsent += int(w.length)
		}
		q.binds = q.binds || w.op == OpBind
		n++
	}
	return n
}

// outstanding is the number of requests that are posted and not complete.
func (q *sendQueue) outstanding() int { return q.counted.Sub(seq.Num(q.done.Load())) }

// recvQueue is the receives of a connection.
type recvQueue struct {
	workRing
	next seq.Num // next receive to be filled; the engine owner's
}
