package wire

import (
	"github.com/datxdp/datxdp/wire/internal/recovery"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// position is a place in the sequence of requests, or in the sequence of responses.
type position = recovery.Position

// sendQueue holds the requests of a connection and records how far they have been cut into packets. Any goroutine may
// post to the embedded ring. The other fields belong to the engine's owner.
type sendQueue struct {
	workRing
	counted  seq.Num  // requests included in unsent
	nextPos  position // next byte to send
	ackedPos position // position up to which the peer has acknowledged
	oldKey   uint32   // key that the bind at nextPos has replaced, while another engine uses it; otherwise 0
	unsent   int      // bytes not sent yet, chunk headers included
	msn      seq.Num  // number of the next message
	binds    bool     // a bind was posted on this connection
}

// restart prepares the queue for a new connection, which begins with the next posted request.
func (q *sendQueue) restart() {
	done := seq.Num(q.doneCount.Load())
	q.counted, q.nextPos, q.ackedPos = done, position{Op: done}, position{Op: done}
	q.oldKey, q.unsent, q.msn, q.binds = 0, 0, 0, false
}

// count adds newly posted requests to unsent. It returns their number.
func (q *sendQueue) count() (n int) {
	for posted := seq.Num(q.postedCount.Load()); q.counted != posted; q.counted++ {
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

// outstanding returns the number of requests that are posted and not complete.
func (q *sendQueue) outstanding() int { return q.counted.Sub(seq.Num(q.doneCount.Load())) }

// recvQueue holds the receives of a connection.
type recvQueue struct {
	workRing
	nextRecv seq.Num // next receive to fill; belongs to the engine's owner
}
