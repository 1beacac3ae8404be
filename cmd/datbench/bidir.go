package main

import "github.com/datxdp/datxdp/internal/result"

// shapeBoth is the shapes of both sides of a stream in one: each sends and is sent to. What a side reads
// into is not what the other reads.
func shapeBoth(r Spec) (i, t shape) {
	i, t = shapes[r.Op](r)
	both := shape{sources: phases, rdma: i.rdma + t.rdma, messages: max(i.messages, t.messages), requests: max(i.requests, t.requests)}
	return both, both
}

// shapes are those of one direction.
var shapes = map[string]func(Spec) (i, t shape){result.Send: shapeStreamSend, result.Write: shapeStreamWrite, result.Read: shapeRead}

// streamBoth streams one way while the target streams the other; each counts its own operations that
// have completed.
func streamBoth(c *conn, r *result.Result) (evidence, error) {
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
	in.Count(t.count, t.elapsed)
	r.Bidir = &result.Bidir{OutMsgsPerSec: r.MsgsPerSec, InMsgsPerSec: in.MsgsPerSec, OutGbps: r.Gbps, InGbps: in.Gbps}
	r.Samples, r.MsgsPerSec, r.Gbps = r.Samples+in.Samples, r.MsgsPerSec+in.MsgsPerSec, r.Gbps+in.Gbps
	e.elapsed, e.tally = min(e.elapsed, t.elapsed), &t
	return e, nil
}

// answerBoth is the target of it.
func answerBoth(c *conn) (tally, error) {
	over := false
	c.onReceive = func(slot, _ int) error {
		if c.mem.slot(slot)[0] == phaseEnd {
			over = true
			return nil
		}
		return c.receive(slot)
	}
	var r result.Result
	e, err := c.countDone(&r)
	if err != nil {
		return tally{}, err
	}
	return tally{count: r.Samples, elapsed: e.elapsed}, c.until(func() bool { return over })
}
