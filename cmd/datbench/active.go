package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// active is the initiator's part in one row.
type active struct {
	adapter *adapter
	station station
	host    *host
	row     Spec
	work    workload
}

// connect makes the row's connections.
func (a *active) connect(ctx context.Context) (c *conn, err error) {
	if a.work, err = workloadFor(a.row.Op, a.row.Metric, a.row.BothWays); err != nil {
		return nil, err
	}
	sh, _ := a.work.shape(a.row)
	if c, err = newConn(ctx, a.adapter, a.row, sh); err != nil {
		return nil, err
	}
	if err := c.connect(a.station, a.host.job); err != nil {
		return nil, errors.Join(err, c.free())
	}
	return c, nil
}

// measure runs the row over its connections, and frees them. The goroutine is locked to its thread.
func (a *active) measure(c *conn) (r result.Result, err error) {
	defer func() { err = errors.Join(err, c.free()) }()
	c.realtime = a.row.Realtime
	r = newResult(a.row)
	r.Mode, r.Transport = a.adapter.attr.Mode, a.adapter.transport()
	c.meter = newMeter(a.row, a.host.tell)
	err = c.measure(a.work, &r)
	c.meter.fill(&r)
	return r, err
}

// measure runs the row's workload and ends the connection in order.
func (c *conn) measure(w workload, r *result.Result) error {
	if err := c.churn(); err != nil {
		return err
	}
	release, err := c.hurry()
	if err != nil {
		return err
	}
	defer release()
	use, base := startUsage(), c.losses()
	e, err := w.active(c, r)
	if err != nil {
		return err
	}
	share := use.share()
	if e.tally == nil {
		t, err := c.finish()
		if err != nil {
			return err
		}
		e.tally = &t
	}
	lost := c.losses().since(base)
	r.Retransmits, r.Drops = lost.retransmits+e.tally.retransmits, lost.drops+e.tally.drops
	e.row, e.coreShare = c.row, []float64{share, e.tally.coreShare}
	judge(r, e)
	return c.disconnect()
}

// connect posts the receives, makes the row's connections and learns the target's memory.
func (c *conn) connect(s station, job uint64) error {
	if err := c.receiveAll(); err != nil {
		return err
	}
	asked := ask{row: c.row, remote: c.mem.remote(), session: rand.Uint64(), job: job}
	for i := range c.eps {
		c.use(i)
		asked.index = i
		if err := c.connectOne(s, asked); err != nil {
			return err
		}
	}
	c.use(0)
	c.extend()
	return nil
}

func (c *conn) connectOne(s station, asked ask) error {
	if err := c.ep.Connect(s.Peer, qualifier, connectTimeout, asked.encode()); err != nil {
		return fmt.Errorf("%v cannot be reached from %s, check the address and its route: %w", s.Peer, s.IA, err)
	}
	for deadline := time.Now().Add(connectTimeout + patience); time.Now().Before(deadline) && c.ctx.Err() == nil; {
		_, err := c.evd.Wait(waitSlice, 1, &c.ev)
		if errors.Is(err, dat.ErrTimeoutExpired) {
			continue
		}
		if err != nil {
			return err
		}
		if c.ev.Number != dat.EventDTOCompletion { // a receive that is flushed: the reason follows
			return c.connected(s)
		}
	}
	return errors.Join(c.ctx.Err(), &absentError{s, "did not answer"})
}

// waitSlice is how often a waiter looks up.
const waitSlice = 50 * time.Millisecond

// connected is what became of the request.
func (c *conn) connected(s station) error {
	switch c.ev.Number {
	case dat.EventEstablished:
		if len(c.ev.PrivateData) < remoteSize {
			return errSpec
		}
		c.up++
		c.remote = decodeRemote(c.ev.PrivateData)
		return nil
	case dat.EventPeerRejected:
		if isTaken(c.ev.PrivateData) {
			return &takenError{s, string(c.ev.PrivateData)}
		}
		return fmt.Errorf("%v refused: %s", s.Peer, c.ev.PrivateData)
	case dat.EventNonPeerRejected:
		if c.ev.BreakReason == dat.BreakPort {
			return &absentError{s, "is there, but no program has the port"}
		}
		return &absentError{s, "answers, but no datbench listens there"}
	case dat.EventTimedOut:
		return &absentError{s, "did not answer"}
	case dat.EventUnreachable:
		return &absentError{s, "cannot be reached"}
	default:
		return fmt.Errorf("%v: %v", s.Peer, c.ev.Number)
	}
}

// absentError is a peer that is not there.
type absentError struct {
	s   station
	why string
}

func (e *absentError) Error() string {
	return fmt.Sprintf("%v %s: start \"datbench server\" on it, with UDP port %d open between the hosts", e.s.Peer, e.why, e.s.Port)
}

// disconnect ends the connection and waits until it has ended.
func (c *conn) disconnect() error {
	for _, ep := range c.eps {
		if err := ep.Disconnect(dat.CloseGraceful); err != nil {
			return err
		}
	}
	return c.farewell()
}

// farewell waits for the end of the connections.
func (c *conn) farewell() error {
	c.onReceive = func(int, int) error { return nil }
	for c.deadline = time.Now().Add(patience); c.gone < len(c.eps); {
		if _, err := c.poll(); err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	return nil
}
