package workload

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
)

// watch detects a peer that is alive but has stopped working on its row: no connection of the row has received a
// message, a request, or an acknowledgement for longer than the time limit. The library itself detects a dead peer.
type watch struct {
	peer   netip.Addr
	target bool // this side is the target
	limit  time.Duration

	next time.Time // time of the next check
	// seen is a counter that changes with each packet that carries data. since is the time of its last change.
	seen  uint32
	since time.Time
}

// watchEvery is the time between two checks of the connections. A check stops the engine for some microseconds.
const watchEvery = 250 * time.Millisecond

// newWatch returns a watch for a row. The watch ends the row if the peer is silent for longer than the time limit. In a
// row with --churn this limit is longer, because the peer sends nothing while it fills its heap.
func newWatch(peer netip.Addr, r plan.Spec, target bool) *watch {
	w := &watch{peer: peer, target: target, limit: peerSilence, since: time.Now()}
	if r.Churn > 0 {
		w.limit += plan.ChurnLimit
	}
	return w
}

// check is called while no event arrives. It returns an error if the peer has stopped.
func (w *watch) check(c *Conn, now time.Time) error {
	if now.Before(w.next) {
		return nil
	}
	if now.Sub(w.next) > w.limit/2 { // this side was busy, or stopped, and has not looked
		w.since = now
	}
	w.next = now.Add(watchEvery)
	all, err := c.IA.Connections()
	if err != nil {
		return err
	}
	if seen := w.progress(all); seen != w.seen {
		w.seen, w.since = seen, now
	}
	quiet := now.Sub(w.since)
	switch {
	case quiet <= w.limit:
		return nil
	case w.target:
		return fmt.Errorf("the client is alive but has sent nothing for %s: dropped", quiet.Round(time.Second))
	default:
		return fmt.Errorf("%v is alive but has answered nothing for %s: see what \"datbench server\" says there, or start it again",
			w.peer, quiet.Round(time.Second))
	}
}

// progress returns the sum of the packet counters of both directions. One direction is not enough, because an initiator
// in a row of RDMA reads sends no new request until the answers arrive.
func (w *watch) progress(all []dat.ConnInfo) (seen uint32) {
	for i := range all {
		if all[i].Passive == w.target && all[i].Peer == w.peer {
			seen += all[i].RecvNext + all[i].SendOldest
		}
	}
	return seen
}
