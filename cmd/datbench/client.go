package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/dat"
)

// datInitiator measures rows of DAT operations. Every row has a connection of its own.
type datInitiator struct {
	a *adapter
	s station
}

func newDATInitiator(h *host, s station) (initiator, error) {
	a, err := openAdapter(h, s)
	if err != nil {
		return nil, err
	}
	return &datInitiator{a, s}, nil
}

func (i *datInitiator) close() error { return i.a.close() }

func (i *datInitiator) run(ctx context.Context, row Row) (r Result, err error) {
	w, err := workloadFor(row.Op, row.Metric)
	if err != nil {
		return r, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	row = i.complete(row)
	sh, _ := w.shape(row)
	c, err := newConn(ctx, i.a, row, sh)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.free()) }()
	if err := c.connect(i.s); err != nil {
		return r, err
	}
	r = newResult(row)
	r.Mode, r.Transport = i.a.attr.Mode, i.a.transport()
	return r, c.measure(w, &r)
}

// complete fills in what the adapter decides.
func (i *datInitiator) complete(row Row) Row {
	row.Depth = row.depth()
	if row.Op == opRead {
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
func (c *conn) measure(w workload, r *Result) error {
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

// connect posts the receives, connects and learns the target's memory.
func (c *conn) connect(s station) error {
	if err := c.receiveAll(); err != nil {
		return err
	}
	c.extend()
	private := ask{c.row, c.mem.remote()}.encode()
	if err := c.ep.Connect(s.Peer, qualifier, connectTimeout, private); err != nil {
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
			return errAsk
		}
		c.up, c.remote = true, decodeRemote(c.ev.PrivateData)
		return nil
	case dat.EventPeerRejected:
		return fmt.Errorf("%v refused: %s", s.Peer, c.ev.PrivateData)
	case dat.EventNonPeerRejected:
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
	if err := c.ep.Disconnect(dat.CloseGraceful); err != nil {
		return err
	}
	return c.farewell()
}

// farewell waits for the end of the connection.
func (c *conn) farewell() error {
	c.onReceive = func(int, int) error { return nil }
	for c.deadline = time.Now().Add(patience); !c.gone; {
		if _, err := c.poll(); err != nil && !c.gone {
			return err
		}
	}
	return nil
}

func (a *app) clientCommand() *cobra.Command {
	cfg := defaultConfig()
	cfg.duration = time.Second
	c := &cobra.Command{
		Use:   "run HOST",
		Short: "Measure against a datbench server on another host",
		Args:  oneHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runClient(cmd.Context(), &cfg, args[0])
		},
	}
	cfg.jsonFlag(c)
	cfg.metricsFlag(c)
	cfg.adapterFlags(c)
	cfg.timeFlags(c)
	cfg.workloadFlags(c)
	cfg.impairFlag(c, "at this end; each row is measured without it first")
	cfg.pcapFlag(c)
	return c
}

func oneHost(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return errors.New("run needs one host: datbench run HOST --ia xdp:INTERFACE, with \"datbench server\" on HOST")
}

func (a *app) runClient(ctx context.Context, cfg *config, name string) error {
	if err := oneLineOf([]error{cfg.validateAdapter(), cfg.validateWorkload()}); err != nil {
		return err
	}
	peer, err := lookup(ctx, name)
	if err != nil {
		return err
	}
	out, err := openOutput(cfg.json, a.stdout)
	if err != nil {
		return err
	}
	defer out.close()
	h, err := a.newHost(ctx, cfg.metrics)
	if err != nil {
		return err
	}
	if h.capture, err = newCapture(cfg.pcap); err != nil {
		return err
	}
	report, err := a.measureAgainst(ctx, h, cfg, peer)
	if err = errors.Join(err, h.capture.close()); err != nil {
		return interrupted(ctx, err)
	}
	return out.write(report)
}

// lookup is the first address of a host.
func lookup(ctx context.Context, name string) (netip.Addr, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Unmap(), nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("host %q: %w", name, err)
	}
	return addrs[0].Unmap(), nil
}

// measureAgainst measures every row, and again impaired if that is asked for.
func (a *app) measureAgainst(ctx context.Context, h *host, cfg *config, peer netip.Addr) (*Report, error) {
	report := &Report{Env: newEnv(fmt.Sprintf("%s to %v", cfg.ia, peer))}
	report.Env.Pcap = cfg.pcap
	rows, passes := cfg.rows(""), cfg.impair.passes()
	pr := newProgress(a.stderr, len(rows)*len(passes))
	defer pr.end()
	for _, impair := range passes {
		ph := phase{rows: slices.Clone(rows), initiator: station{Kind: kindDAT, IA: cfg.ia, Peer: peer, Port: cfg.port}}
		results, err := measurePass(ctx, h, ph.impaired(impair), pr)
		if err != nil {
			return nil, err
		}
		report.Results = append(report.Results, results...)
	}
	compare(report.Results)
	return report, nil
}

// measurePass measures the rows of a phase. The first that cannot be measured ends it: the rest would
// wait for the same absent peer.
func measurePass(ctx context.Context, h *host, ph phase, pr progress) (results []Result, err error) {
	i, err := h.newInitiator(ph.initiator)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	for _, row := range ph.rows {
		pr.begin(row.title())
		var r Result
		err := within(row.limit(), row.title(), func() (err error) {
			r, err = i.run(ctx, row)
			return err
		})
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}
