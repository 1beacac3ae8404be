package recovery

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

const (
	// maxQuarters bounds the reordering window: a quarter of the round trip for each packet that was sent again in vain,
	// up to the whole round trip (RFC 8985 §6.2, step 4).
	maxQuarters = 4
	// reorderPersist is the number of recoveries, without a packet that was sent again in vain, after which the
	// reordering window shrinks (RFC 8985 §6.2, step 4).
	reorderPersist = 16
)

// arrival is what RACK knows of the packets that have arrived (RFC 8985 §6.2, step 2).
type arrival struct {
	sentAt clock.Time    // when the packet left that left last
	least  time.Duration // shortest round trip of a packet that was sent once; 0: none
}

// observe notes that p is acknowledged. If p was sent again less than the shortest round trip ago, an earlier transmission
// of it has arrived.
func (a *arrival) observe(now clock.Time, p *Packet) {
	d := now.Sub(p.SentAt)
	switch {
	case p.sacked || p.Retransmitted && d < a.least:
		return
	case !p.Retransmitted && (d < a.least || a.least == 0):
		a.least = d
	}
	a.sentAt = max(a.sentAt, p.SentAt)
}

// reordering is the reordering window of RACK (RFC 8985 §6.2): how much longer than a round trip a packet may take before
// packets that have overtaken it show that it is lost. The window is 0 until a packet that was taken for lost arrives. Each
// round trip with such a packet enlarges it.
//
// RACK learns from DSACK that a packet was sent again in vain. Here the echoed time stamp shows it.
type reordering struct {
	quarters   uint8   // length of the window in quarters of the round trip
	recoveries uint8   // recoveries since the window last changed
	roundEnd   seq.Num // the window changes, and a recovery counts, once the packets before this one are acknowledged
}

// window returns the length of the reordering window.
func (r *reordering) window(roundTrip time.Duration) time.Duration {
	return roundTrip / maxQuarters * time.Duration(r.quarters)
}

// observe notes that a packet arrived that was marked lost because others had overtaken it. It counts once in a round trip.
func (r *reordering) observe(una, nxt seq.Num) {
	r.recoveries = 0
	if r.roundEnd.LessEq(una) {
		r.quarters, r.roundEnd = min(r.quarters+1, maxQuarters), nxt
	}
}

// recovery notes that packets were marked lost. It counts once in a round trip.
func (r *reordering) recovery(una, nxt seq.Num) {
	if r.quarters == 0 || una.Less(r.roundEnd) {
		return
	}
	r.roundEnd = nxt
	if r.recoveries++; r.recoveries > reorderPersist {
		r.quarters, r.recoveries = r.quarters-1, 0
	}
}
