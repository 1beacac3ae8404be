package workload

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/usage"
	"github.com/datxdp/datxdp/dat"
)

// Passive is the target's side of one row.
type Passive struct {
	Adapter *Adapter
	// CR is the request for the first connection. Ask is the decoded private data of CR, and From is the sender of CR.
	CR   *dat.CR
	Ask  Ask
	From netip.Addr
	// Realtime makes the target measure at real-time priority.
	Realtime bool
	// Next waits until the deadline for connection request number index of the same row.
	Next func(ctx context.Context, index int, deadline time.Time) (*dat.CR, error)
	// Over is called when the row is measured, before the connections end.
	Over func()
}

// Serve accepts the connections and runs the target's side of the row. At the end it sends the tally, which is the
// target's result, to the initiator. The calling goroutine must be locked to its thread.
func (p *Passive) Serve(ctx context.Context) (sum measure.Tally, err error) {
	w, err := workloadFor(p.Ask.Spec.Op, p.Ask.Spec.Metric, p.Ask.Spec.BothWays)
	if err != nil {
		return sum, errors.Join(err, Refuse(p.CR, err.Error()))
	}
	_, sh := w.shape(p.Ask.Spec)
	c, err := newConn(ctx, p.Adapter, p.Ask.Spec, sh)
	if err != nil {
		return sum, errors.Join(err, Refuse(p.CR, err.Error()))
	}
	defer func() { err = errors.Join(err, c.free()) }()
	if err := p.accept(c); err != nil {
		return sum, err
	}
	c.extend()
	c.watch = newWatch(p.From, p.Ask.Spec, true)
	if err := c.churnToo(); err != nil {
		return sum, err
	}
	c.realtime = p.Realtime
	release, err := c.raisePriority()
	if err != nil {
		return sum, err
	}
	defer release()
	if sum, err = c.serve(w); err != nil {
		return sum, err
	}
	p.Over()
	return sum, c.awaitDisconnect()
}

// serve runs the target's side of the workload and sends its tally.
func (c *Conn) serve(w workload) (sum measure.Tally, err error) {
	threads, use, base := measure.CountThreads(), usage.Start(), c.Losses()
	if sum, err = w.passive(c); err != nil {
		return sum, err
	}
	lost := c.Losses().Since(base)
	sum.Retransmits, sum.Drops, sum.CoreShare = lost.Retransmits, lost.Drops, use.Share()
	if t := threads.Since(); t != nil {
		sum.Threads = *t
	}
	return sum, c.answer(sum)
}

// accept accepts the connections of the row. The first connection is the one whose request asked for the row. All
// connections must be established within plan.PeerTimeout, however many they are.
func (p *Passive) accept(c *Conn) error {
	c.remote = p.Ask.remote
	cr := p.CR
	if err := c.receiveAll(); err != nil {
		return errors.Join(err, Refuse(cr, err.Error()))
	}
	c.deadline = time.Now().Add(plan.PeerTimeout)
	for i := range c.eps {
		if i > 0 {
			var err error
			if cr, err = p.Next(c.ctx, i, c.deadline); err != nil {
				return err
			}
		}
		if err := cr.Accept(c.eps[i], appendRemote(nil, c.mem.remote())); err != nil {
			return err
		}
		// Messages may arrive as soon as the connection is established. They stay in the queue until onReceive is set.
		if err := c.pollUntil(func() bool { return c.numEstablished > i }); err != nil {
			return err
		}
	}
	return nil
}
