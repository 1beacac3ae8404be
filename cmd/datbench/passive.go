package main

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// passive is the target's part in one row.
type passive struct {
	adapter *adapter
	// cr is the request for the first connection, asked what it asks for, and from is who sent it.
	cr    *dat.CR
	asked ask
	from  netip.Addr
	// realtime is whether it measures at real-time priority.
	realtime bool
	// next waits for the request of that index of the same row, until the deadline.
	next func(ctx context.Context, index int, deadline time.Time) (*dat.CR, error)
	// over is called when the row is measured, before the connections have ended.
	over func()
}

// serve accepts the connections, plays the passive side of the row and sends the tally. The goroutine is locked to its
// thread.
func (p *passive) serve(ctx context.Context) (sum tally, err error) {
	w, err := workloadFor(p.asked.row.Op, p.asked.row.Metric, p.asked.row.BothWays)
	if err != nil {
		return sum, errors.Join(err, refuse(p.cr, err.Error()))
	}
	_, sh := w.shape(p.asked.row)
	c, err := newConn(ctx, p.adapter, p.asked.row, sh)
	if err != nil {
		return sum, errors.Join(err, refuse(p.cr, err.Error()))
	}
	defer func() { err = errors.Join(err, c.free()) }()
	if err := p.accept(c); err != nil {
		return sum, err
	}
	c.extend()
	c.watch = newWatch(p.from, p.asked.row)
	if err := c.churnToo(); err != nil {
		return sum, err
	}
	c.realtime = p.realtime
	release, err := c.hurry()
	if err != nil {
		return sum, err
	}
	defer release()
	if sum, err = c.serve(w); err != nil {
		return sum, err
	}
	p.over()
	return sum, c.farewell()
}

// serve runs the passive side of the workload and sends its tally.
func (c *conn) serve(w workload) (sum tally, err error) {
	use, base := startUsage(), c.losses()
	if sum, err = w.passive(c); err != nil {
		return sum, err
	}
	lost := c.losses().since(base)
	sum.retransmits, sum.drops, sum.coreShare = lost.retransmits, lost.drops, use.share()
	return sum, c.answer(sum)
}

// accept makes the row's connections: that of the first request, and of those that follow it. All of them have to be
// there soon.
func (p *passive) accept(c *conn) error {
	c.remote = p.asked.remote
	cr := p.cr
	if err := c.receiveAll(); err != nil {
		return errors.Join(err, refuse(cr, err.Error()))
	}
	c.deadline = time.Now().Add(patience + time.Duration(len(c.eps))*joinTime)
	for i := range c.eps {
		if i > 0 {
			var err error
			if cr, err = p.next(c.ctx, i, c.deadline); err != nil {
				return err
			}
		}
		if err := cr.Accept(c.eps[i], appendRemote(nil, c.mem.remote())); err != nil {
			return err
		}
		// Messages may be there as soon as it is established: they wait until their receiver is set.
		if err := c.until(func() bool { return c.up > i }); err != nil {
			return err
		}
	}
	return nil
}
