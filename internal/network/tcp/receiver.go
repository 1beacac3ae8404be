package tcp

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/datxdp/datxdp/link"
)

const (
	delayedAck = 40 * time.Millisecond // Linux, TCP_DELACK_MIN
	never      = math.MaxInt64
)

// Receiver acknowledges the segments of one Sender.
type Receiver struct {
	end
	ecn     bool
	next    int64          // next segment in order
	early   map[int64]bool // segments that arrived before their turn
	pending ack            // what the next acknowledgement says
	unacked int            // segments in order since the last acknowledgement
	ackAt   int64          // when it leaves at the latest
	ce      bool           // the last segment was marked (RFC 8257 §3.2)
	sent    int            // packets in this turn
}

// NewReceiver returns the receiver of a sender that a link reaches on a path. With ecn it echoes congestion marks as a
// receiver of DCTCP.
func NewReceiver(l link.Link, path link.Path, ecn bool) *Receiver {
	return &Receiver{end: end{link: l, path: path}, ecn: ecn, early: make(map[int64]bool), ackAt: never}
}

// Received returns the number of segments that have arrived in order.
func (r *Receiver) Received() int64 { return r.next }

// Turn does all work that is due at now. It returns the time of the next turn if no packet arrives, and the number of
// packets received and sent.
func (r *Receiver) Turn(now int64) (next int64, packets int) {
	r.sent = 0
	n := r.receive(func(b *link.Buf) { r.segment(now, b) })
	if now >= r.ackAt {
		r.acknowledge()
	}
	if n == len(r.bufs) {
		return now, n + r.sent
	}
	return r.ackAt, n + r.sent
}

// segment takes in a segment.
func (r *Receiver) segment(now int64, b *link.Buf) {
	seq := int64(binary.BigEndian.Uint64(b.Data[offSeq:]))
	if ce := r.ecn && b.Flags&link.CE != 0; ce != r.ce {
		if r.unacked > 0 {
			r.acknowledge() // with the old state
		}
		r.ce = ce
	}
	if r.pending.n == maxListed {
		r.acknowledge()
	}
	r.pending.listed[r.pending.n] = seq
	r.pending.n++
	inOrder := seq == r.next && len(r.early) == 0
	r.place(seq)
	if r.unacked++; !inOrder || r.unacked >= 2 {
		r.acknowledge()
	} else {
		r.ackAt = now + int64(delayedAck)
	}
}

func (r *Receiver) place(seq int64) {
	if seq > r.next {
		r.early[seq] = true
	}
	if seq != r.next {
		return
	}
	for r.next++; r.early[r.next]; r.next++ {
		delete(r.early, r.next)
	}
}

func (r *Receiver) acknowledge() {
	a := r.pending
	a.next, a.ece = r.next, r.ce
	if r.send(a.put) {
		r.sent++
	}
	r.pending, r.unacked, r.ackAt = ack{}, 0, never
}
