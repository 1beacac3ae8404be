package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// datInitiator measures rows of DAT operations. Every row has a connection of its own.
type datInitiator struct {
	a *adapter
	s station
	h *host
}

func newDATInitiator(h *host, s station) (initiator, error) {
	a, err := openAdapter(h, s)
	if err != nil {
		return nil, err
	}
	return &datInitiator{a, s, h}, nil
}

func (i *datInitiator) close() error { return i.a.close() }

func (i *datInitiator) run(ctx context.Context, row Spec) (r result.Result, err error) {
	w, err := workloadFor(row.Op, row.Metric, row.BothWays)
	if err != nil {
		return r, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	release, err := pin(i.s.CPUs)
	if err != nil {
		return r, err
	}
	defer release()
	row = i.complete(row)
	var c *conn
	err = await(ctx, i.h.wait, i.h.waiting, func() (err error) {
		c, err = i.connect(ctx, w, row)
		return err
	})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.free()) }()
	c.realtime = row.Realtime
	r = newResult(row)
	r.Mode, r.Transport = i.a.attr.Mode, i.a.transport()
	c.meter = newMeter(row, i.h.tell)
	err = c.measure(w, &r)
	c.meter.fill(&r)
	return r, err
}

// connect makes the row's connections.
func (i *datInitiator) connect(ctx context.Context, w workload, row Spec) (*conn, error) {
	sh, _ := w.shape(row)
	c, err := newConn(ctx, i.a, row, sh)
	if err != nil {
		return nil, err
	}
	if err := c.connect(i.s, i.h.job); err != nil {
		return nil, errors.Join(err, c.free())
	}
	return c, nil
}

// complete fills in what the adapter decides.
func (i *datInitiator) complete(row Spec) Spec {
	row.Depth = row.depth()
	if row.Op == result.Read {
		row.Depth = min(row.Depth, i.a.attr.MaxRDMAReadPerEPOut)
	}
	if row.MTU == 0 {
		row.MTU = mtuOf(i.a.attr.Address)
	}
	return row
}

// mtuOf is the MTU of the interface that has an address, 0 if none has.
func mtuOf(addr netip.Addr) int {
	ifis, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, ifi := range ifis {
		addrs, err := ifi.Addrs()
		for _, a := range addrs {
			prefix, parseErr := netip.ParsePrefix(a.String())
			if err != nil || parseErr != nil {
				continue
			}
			// Every address of 127.0.0.0/8 is there without being listed.
			if prefix.Addr() == addr || addr.IsLoopback() && prefix.Contains(addr) {
				return ifi.MTU
			}
		}
	}
	return 0
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
