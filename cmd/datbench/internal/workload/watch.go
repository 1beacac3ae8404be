package workload

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
)

// watch runs at a target and detects an initiator that is alive but has stopped working on its row. In this case no
// connection of the row has received a request, or an acknowledgement of read data, for longer than the time limit. The
// library itself detects a dead peer.
type watch struct {
	peer  netip.Addr
	limit time.Duration

	next time.Time // time of the next check
	// seen is a counter that changes with each packet that carries data. since is the time of its last change.
	seen  uint32
	since time.Time
}

// watchEvery is the time between two checks of the connections. A check stops the engine for some microseconds.
const watchEvery = 250 * time.Millisecond

// newWatch returns a watch for a row. The watch ends the row if the peer is silent for longer than the time limit. In a
// row with --churn this limit is longer, because the initiator sends nothing while it fills its heap.
func newWatch(peer netip.Addr, r plan.Spec) *watch {
	w := &watch{peer: peer, limit: clientSilence, since: time.Now()}
	if r.Churn > 0 {
		w.limit += plan.ChurnLimit
	}
	return w
}

// check is called while no event arrives. It returns an error if the initiator has stopped.
func (w *watch) check(c *Conn, now time.Time) error {
	if now.Before(w.next) {
		return nil
	}
	w.next = now.Add(watchEvery)
	all, err := c.IA.Connections()
	if err != nil {
		return err
	}
	if seen := w.progress(all); seen != w.seen {
		w.seen, w.since = seen, now
	}
	if quiet := now.Sub(w.since); quiet > w.limit {
		return fmt.Errorf("the client is alive but has sent nothing for %s: dropped", quiet.Round(time.Second))
	}
	return nil
}

// progress returns the sum of the packet counters of both directions. One direction is not enough, because an initiator
// in a row of RDMA reads sends no new request until the answers arrive.
func (w *watch) progress(all []dat.ConnInfo) (seen uint32) {
	for i := range all {
		if all[i].Passive && all[i].Peer == w.peer {
			seen += all[i].RecvNext + all[i].SendOldest
		}
	}
	return seen
}
