package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/usage"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// Active is the initiator's side of one row.
type Active struct {
	Adapter *Adapter
	Station plan.Station
	Host    *Host
	Spec    plan.Spec
	work    workload
}

// Connect makes the row's connections.
func (a *Active) Connect(ctx context.Context) (c *Conn, err error) {
	if a.work, err = workloadFor(a.Spec.Op, a.Spec.Metric, a.Spec.BothWays); err != nil {
		return nil, err
	}
	sh, _ := a.work.shape(a.Spec)
	if c, err = newConn(ctx, a.Adapter, a.Spec, sh); err != nil {
		return nil, err
	}
	if err := c.connect(a.Station, a.Host.Job); err != nil {
		return nil, errors.Join(err, c.free())
	}
	return c, nil
}

// Measure measures the row on its connections, and frees them. The calling goroutine must be locked to its thread.
func (a *Active) Measure(c *Conn) (r result.Result, err error) {
	defer func() { err = errors.Join(err, c.free()) }()
	c.realtime, c.watch = a.Spec.Realtime, newWatch(a.Station.Peer, a.Spec, false)
	r = measure.NewResult(a.Spec)
	r.Mode, r.Transport = a.Adapter.Attr.Mode, a.Adapter.transport()
	c.meter = newMeter(a.Spec, a.Host.Tell)
	err = c.measure(a.work, &r)
	c.meter.fill(&r)
	return r, err
}

// measure runs the row's workload and ends the connections gracefully.
func (c *Conn) measure(w workload, r *result.Result) error {
	if err := c.churn(); err != nil {
		return err
	}
	release, err := c.raisePriority()
	if err != nil {
		return err
	}
	defer release()
	threads, use, base := measure.CountThreads(), usage.Start(), c.Losses()
	e, err := w.active(c, r)
	if err != nil {
		return err
	}
	share := use.Share()
	r.Client = threads.Since()
	if e.Tally == nil {
		t, err := c.finish()
		if err != nil {
			return err
		}
		e.Tally = &t
	}
	lost := c.Losses().Since(base)
	r.Retransmits, r.Drops = lost.Retransmits+e.Tally.Retransmits, lost.Drops+e.Tally.Drops
	if e.Tally.Threads != (result.Threads{}) {
		r.Server = &e.Tally.Threads
	}
	e.Spec, e.CoreShare = c.row, []float64{share, e.Tally.CoreShare}
	measure.Judge(r, e)
	return c.disconnect()
}

// connect posts the receives and makes the row's connections. It also receives the address of the target's memory.
func (c *Conn) connect(s plan.Station, job uint64) error {
	if err := c.receiveAll(); err != nil {
		return err
	}
	asked := Ask{Spec: c.row, remote: c.mem.remote(), Session: rand.Uint64(), Job: job}
	for i := range c.eps {
		c.use(i)
		asked.Index = i
		if err := c.connectOne(s, asked); err != nil {
			return err
		}
	}
	c.use(0)
	c.extend()
	return nil
}

func (c *Conn) connectOne(s plan.Station, asked Ask) error {
	config := dat.ConnectConfig{Timeout: ConnectTimeout, PrivateData: asked.Encode(), PeerName: s.PeerKey}
	if key, err := dat.ParsePublicKey(s.PeerKey); err == nil {
		config.PeerKey, config.PeerName = key, ""
	}
	if err := c.ep.ConnectWith(s.Peer, QualifierOf(s), config); err != nil {
		if errors.Is(err, dat.ErrInvalidParameter) && (c.row.Secure || s.PeerKey != "") {
			return fmt.Errorf("the public key of %v is not known, check --key, --peers and --peer-key: %w", s.Peer, err)
		}
		return fmt.Errorf("%v cannot be reached from %s, check the address and its route: %w", s.Peer, s.IA, err)
	}
	for deadline := time.Now().Add(ConnectTimeout + plan.PeerTimeout); time.Now().Before(deadline) && c.ctx.Err() == nil; {
		_, err := c.evd.Wait(waitSlice, 1, &c.ev)
		if errors.Is(err, dat.ErrTimeoutExpired) {
			continue
		}
		if err != nil {
			return err
		}
		if c.ev.Number != dat.EventDTOCompletion { // a flushed receive; the event with the reason follows
			return c.connected(s)
		}
	}
	return errors.Join(c.ctx.Err(), &AbsentError{s, "did not answer"})
}

// waitSlice is the time between two checks for cancellation during a wait.
const waitSlice = 50 * time.Millisecond

// connected handles the result of the connection request.
func (c *Conn) connected(s plan.Station) error {
	switch c.ev.Number {
	case dat.EventEstablished:
		if len(c.ev.PrivateData) < remoteSize {
			return plan.ErrSpec
		}
		c.numEstablished++
		c.remote = decodeRemote(c.ev.PrivateData)
		return nil
	case dat.EventPeerRejected:
		if IsTaken(c.ev.PrivateData) {
			return &TakenError{s, result.Printable(string(c.ev.PrivateData))}
		}
		return refused(s, c.ev.PrivateData)
	default:
		return c.unanswered(s)
	}
}

// refused returns the error of a request that the peer has rejected with its reason as private data.
func refused(s plan.Station, reason []byte) error {
	if len(reason) == 0 {
		return fmt.Errorf("%v refused without a reason: a program that is not datbench may serve there", s.Peer)
	}
	return fmt.Errorf("%v refused: %s", s.Peer, result.Printable(string(reason)))
}

// unanswered returns the error of a request that no datbench server has answered.
func (c *Conn) unanswered(s plan.Station) error {
	reason := c.ev.BreakReason
	if reason == dat.BreakHandshake {
		return fmt.Errorf("%v did not answer the handshake: its file of peers (--peers) needs the line of this host, not expired and with its address "+
			"if it has from=, and its key has to be the one that --peer-key, the file of peers or known= names here; with known=, a new server needs announce", s.Peer)
	}
	if reason == dat.BreakSecure {
		return fmt.Errorf("%v is in secure mode: give a key with --key, and say who the server is with --peer-key", s.Peer)
	}
	if reason == dat.BreakOption {
		return fmt.Errorf("%v is in plaintext mode: start the server with --key and --peers", s.Peer)
	}
	if reason == dat.BreakResources {
		return fmt.Errorf("%v takes no more connections of this host: too many are open, or the line of this host in its file of peers has "+
			"a smaller connections= or bytes=", s.Peer)
	}
	if reason == dat.BreakNoListener && c.row.Secure {
		return fmt.Errorf("%w; or the line of this host in its file of peers has services= without %#x, which is datbench",
			&AbsentError{s, "answers, but no datbench listens there"}, uint64(QualifierOf(s)))
	}
	if reason == dat.BreakPort {
		return &AbsentError{s, "is there, but no program has the port"}
	}
	switch c.ev.Number {
	case dat.EventNonPeerRejected:
		return &AbsentError{s, "answers, but no datbench listens there"}
	case dat.EventTimedOut:
		return &AbsentError{s, "did not answer"}
	case dat.EventUnreachable:
		return &AbsentError{s, "cannot be reached"}
	default:
		return fmt.Errorf("%v: %v", s.Peer, c.ev.Number)
	}
}

// AbsentError reports a peer that does not answer, or that runs no datbench server.
type AbsentError struct {
	s   plan.Station
	why string
}

func (e *AbsentError) Error() string {
	return fmt.Sprintf("%v %s: start \"datbench server\" on it, with UDP port %d open between the hosts", e.s.Peer, e.why, e.s.Port)
}

// disconnect ends the connections and waits until they have ended.
func (c *Conn) disconnect() error {
	for _, ep := range c.eps {
		if err := ep.Disconnect(dat.CloseGraceful); err != nil {
			return err
		}
	}
	return c.awaitDisconnect()
}

// awaitDisconnect waits for the end of the connections.
func (c *Conn) awaitDisconnect() error {
	c.onReceive = func(int, int) error { return nil }
	for c.deadline = time.Now().Add(plan.PeerTimeout); c.numEnded < len(c.eps); {
		if _, err := c.poll(); err != nil && !errors.Is(err, ErrGone) {
			return err
		}
	}
	return nil
}
