package workload

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
)

// watch is how a target finds out that its initiator is there and does nothing: no packet with a request, and no
// acknowledgement of what it reads, has come on any connection of the row for longer than limit. A peer that is dead is the library's to find out.
type watch struct {
	peer  netip.Addr
	limit time.Duration

	next time.Time // of the next look
	// seen changes with each packet that carries something, since when it has not.
	seen  uint32
	since time.Time
}

// watchEvery is how often the connections are looked at, which stops the engine for some microseconds.
const watchEvery = 250 * time.Millisecond

// newWatch is that of a row. Filling a heap takes an initiator a while in which it sends nothing.
func newWatch(peer netip.Addr, r plan.Spec) *watch {
	w := &watch{peer: peer, limit: stopped, since: time.Now()}
	if r.Churn > 0 {
		w.limit += plan.ChurnLimit
	}
	return w
}

// look is called while nothing happens. It returns an error for an initiator that has stopped.
func (w *watch) look(c *Conn, now time.Time) error {
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
		return fmt.Errorf("the client is there and has sent nothing for %s, it is dropped", quiet.Round(time.Second))
	}
	return nil
}

// progress changes with each packet that carries something, in either direction: an initiator that
// reads sends nothing new until the answers are there.
func (w *watch) progress(all []dat.ConnInfo) (seen uint32) {
	for i := range all {
		if all[i].Passive && all[i].Peer == w.peer {
			seen += all[i].RecvNext + all[i].SendOldest
		}
	}
	return seen
}
