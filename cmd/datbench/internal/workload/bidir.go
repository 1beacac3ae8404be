package workload

import (
	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// shapeBoth returns the shape (numbers of buffers) of a bidirectional stream, in which each side sends and receives.
// In an RDMA read stream, a side has two kinds of slots: its own reads go into the one, and the peer reads from the other.
func shapeBoth(r plan.Spec) (i, t shape) {
	i, t = shapes[r.Op](r)
	both := shape{numSources: stages, rdmaSlots: i.rdmaSlots + t.rdmaSlots, messageSlots: max(i.messageSlots, t.messageSlots), numRequests: max(i.numRequests, t.numRequests)}
	return both, both
}

// shapes returns the shapes of one direction.
var shapes = map[string]func(plan.Spec) (i, t shape){result.Send: shapeStreamSend, result.Write: shapeStreamWrite, result.Read: shapeRead}

// streamBoth streams to the target while the target streams back. Each side counts the operations that it completes.
func streamBoth(c *Conn, r *result.Result) (measure.Evidence, error) {
	c.onReceive = func(slot, _ int) error { return c.receive(slot) }
	e, err := c.countDone(r)
	if err != nil {
		return e, err
	}
	t, err := c.finish()
	if err != nil {
		return e, err
	}
	in := result.Result{Row: result.Row{Size: r.Size}}
	in.Count(t.Count, t.Elapsed)
	r.Bidir = &result.Bidir{OutMsgsPerSec: r.MsgsPerSec, InMsgsPerSec: in.MsgsPerSec, OutGbps: r.Gbps, InGbps: in.Gbps}
	r.Samples, r.MsgsPerSec, r.Gbps = r.Samples+in.Samples, r.MsgsPerSec+in.MsgsPerSec, r.Gbps+in.Gbps
	e.Elapsed, e.Tally = min(e.Elapsed, t.Elapsed), &t
	return e, nil
}

// answerBoth is the target's side of streamBoth.
func answerBoth(c *Conn) (measure.Tally, error) {
	over := false
	c.onReceive = func(slot, _ int) error {
		if c.mem.slot(slot)[0] == measure.StageEnd {
			over = true
			return nil
		}
		return c.receive(slot)
	}
	var r result.Result
	e, err := c.countDone(&r)
	if err != nil {
		return measure.Tally{}, err
	}
	return measure.Tally{Count: r.Samples, Elapsed: e.Elapsed}, c.pollUntil(func() bool { return over })
}
