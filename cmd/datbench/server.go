package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/dat"
)

// datTarget serves initiators one after another.
type datTarget struct {
	a    *adapter
	crs  *dat.EVD
	psp  *dat.PSP
	cpus cpuList
	// realtime is whether serve measures at real-time priority.
	realtime bool

	// stop has serve end, which ends served; then err may be read.
	stop   context.CancelFunc
	served context.Context
	wg     sync.WaitGroup
	// waiting are requests that came while another row was gathering its own.
	waiting []*dat.CR
	// log, if not nil, says what it does, and which rows failed.
	log func(format string, args ...any)
	// err is what ended serve, rowErr the first row that failed and was not logged.
	err, rowErr error
}

func newDATTarget(h *host, s station) (target, error) {
	return openTarget(context.Background(), h, s, nil)
}

func openTarget(ctx context.Context, h *host, s station, log func(string, ...any)) (t *datTarget, err error) {
	t = &datTarget{log: log, stop: func() {}, cpus: s.CPUs, realtime: s.Realtime}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
			t = nil
		}
	}()
	if t.a, err = openAdapter(h, s); err != nil {
		return t, err
	}
	if t.crs, err = t.a.ia.CreateEVD(backlog, nil, dat.EVDCR); err != nil {
		return t, err
	}
	if t.psp, err = t.a.ia.CreatePSP(qualifier, t.crs, dat.PSPConsumer); err != nil {
		return t, err
	}
	t.served, t.stop = context.WithCancel(ctx)
	t.wg.Go(func() {
		defer t.stop()
		t.err = t.serve(t.served)
	})
	return t, nil
}

// backlog is connection requests that wait their turn.
const backlog = 64

// serve waits for requests, asleep, and serves each to its end.
func (t *datTarget) serve(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	release, err := t.cpus.pin()
	if err != nil {
		return err
	}
	defer release()
	for ctx.Err() == nil {
		cr, err := t.next()
		if err != nil {
			return fmt.Errorf("waiting for requests: %w", err)
		}
		if cr != nil {
			t.serveOne(ctx, cr)
		}
	}
	return nil
}

// next is the request whose turn it is, nil if none comes for a while.
func (t *datTarget) next() (*dat.CR, error) {
	if len(t.waiting) > 0 {
		cr := t.waiting[0]
		t.waiting = t.waiting[1:]
		return cr, nil
	}
	return t.arrived()
}

func (t *datTarget) arrived() (*dat.CR, error) {
	var ev dat.Event
	_, err := t.crs.Wait(waitSlice, 1, &ev)
	if err != nil && !errors.Is(err, dat.ErrTimeoutExpired) {
		return nil, err
	}
	if err != nil || ev.Number != dat.EventConnectionRequest {
		return nil, nil
	}
	return ev.CR, nil
}

// fail logs or notes a row that failed; those that follow follow from the first.
func (t *datTarget) fail(format string, args ...any) {
	switch err := fmt.Errorf(format, args...); {
	case t.log != nil:
		t.log("%s", oneLine(err.Error()))
	case t.rowErr == nil:
		t.rowErr = err
	}
}

func (t *datTarget) serveOne(ctx context.Context, cr *dat.CR) {
	peer, err := cr.Query()
	if err != nil {
		return // it was withdrawn
	}
	asked, err := decodeAsk(peer.PrivateData)
	if err != nil {
		t.fail("%v: %w", peer.RemoteAddress, errors.Join(err, cr.Reject([]byte(err.Error()))))
		return
	}
	row := asked.row
	start := time.Now()
	tally, err := t.serveRow(ctx, cr, asked)
	if err != nil {
		t.fail("%v: %s: %w", peer.RemoteAddress, row.title(), err)
		return
	}
	if t.log != nil {
		t.log("%v: %s, depth %d: served in %.1f s; %d resent, %d dropped here", peer.RemoteAddress, row.title(), row.depth(),
			time.Since(start).Seconds(), tally.retransmits, tally.drops)
	}
}

// serveRow accepts, plays the passive side and sends the tally.
func (t *datTarget) serveRow(ctx context.Context, cr *dat.CR, asked ask) (sum tally, err error) {
	w, err := workloadFor(asked.row.Op, asked.row.Metric, asked.row.Bidir)
	if err != nil {
		return sum, errors.Join(err, cr.Reject([]byte(err.Error())))
	}
	_, sh := w.shape(asked.row)
	c, err := newConn(ctx, t.a, asked.row, sh)
	if err != nil {
		return sum, errors.Join(err, cr.Reject([]byte(oneLine(err.Error()))))
	}
	defer func() { err = errors.Join(err, c.free()) }()
	if err := t.accept(c, cr, asked); err != nil {
		return sum, err
	}
	if err := c.churnToo(); err != nil {
		return sum, err
	}
	c.realtime = t.realtime
	release, err := c.hurry()
	if err != nil {
		return sum, err
	}
	defer release()
	use, base := startUsage(), c.losses()
	if sum, err = w.passive(c); err != nil {
		return sum, err
	}
	lost := c.losses().since(base)
	sum.retransmits, sum.drops, sum.coreShare = lost.retransmits, lost.drops, use.share()
	if err := c.answer(sum); err != nil {
		return sum, err
	}
	return sum, c.farewell()
}

// accept makes the row's connections: that of the first request, and of those that follow it.
func (t *datTarget) accept(c *conn, cr *dat.CR, first ask) error {
	c.remote = first.remote
	if err := c.receiveAll(); err != nil {
		return err
	}
	for i := range c.eps {
		if i > 0 {
			var err error
			if cr, err = t.gather(c.ctx, first, i); err != nil {
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

// gather waits for the row's request of that index. Others wait their turn.
func (t *datTarget) gather(ctx context.Context, first ask, index int) (*dat.CR, error) {
	for deadline := time.Now().Add(connectTimeout); time.Now().Before(deadline) && ctx.Err() == nil; {
		cr, err := t.arrived()
		if err != nil {
			return nil, err
		}
		if cr == nil {
			continue
		}
		if peer, err := cr.Query(); err == nil {
			if a, err := decodeAsk(peer.PrivateData); err == nil && a.session == first.session && a.index == index {
				return cr, nil
			}
		}
		t.waiting = append(t.waiting, cr)
	}
	return nil, errors.Join(ctx.Err(), fmt.Errorf("connection %d of %d did not come", index+1, first.row.Connections))
}

// close ends what serves and says what went wrong and was not logged.
func (t *datTarget) close() error {
	t.stop()
	t.wg.Wait()
	errs := []error{t.err, t.rowErr}
	if t.psp != nil {
		errs = append(errs, t.psp.Free())
	}
	if t.crs != nil {
		errs = append(errs, t.crs.Free())
	}
	if t.a != nil {
		errs = append(errs, t.a.close())
	}
	return errors.Join(errs...)
}

func (a *app) serverCommand() *cobra.Command {
	cfg := defaultConfig()
	c := &cobra.Command{
		Use:   "server",
		Short: "Serve datbench run, one client after another",
		Example: `  datbench server --ia xdp:eth0
  datbench server --ia auto:eth0 --cpu 3 --metrics 127.0.0.1:9464`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runServer(cmd.Context(), &cfg)
		},
	}
	cfg.metricsFlag(c)
	cfg.adapterFlags(c)
	cfg.impairFlag(c, "at this end")
	return c
}

func (a *app) runServer(ctx context.Context, cfg *config) error {
	if err := cfg.validateAdapter(); err != nil {
		return err
	}
	if err := cfg.cpus.validate(); err != nil {
		return err
	}
	h, err := a.newHost(ctx, cfg.metrics)
	if err != nil {
		return err
	}
	s := station{Kind: kindDAT, IA: cfg.ia, Port: cfg.port, Impair: cfg.impair.text(), CPUs: cfg.cpus, Realtime: cfg.realtime}
	t, err := openTarget(ctx, h, s, func(format string, args ...any) { fmt.Fprintf(a.stdout, format+"\n", args...) })
	if err != nil {
		return err
	}
	attr := t.a.attr
	fmt.Fprintf(a.stdout, "serving on %v, UDP port %d: %s, mode %s%s\n", attr.Address, attr.Port, cfg.ia, attr.Mode, impairedNote(cfg.impair.text()))
	<-t.served.Done()
	return t.close()
}

// newHost is the host of a process that opens its own ends.
func (a *app) newHost(ctx context.Context, address string) (*host, error) {
	if address == "" {
		return &host{}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	fmt.Fprintf(a.stderr, "datbench: metrics on http://%s/metrics\n", l.Addr())
	h := &host{metrics: newShown()}
	go h.metrics.exporter.Serve(ctx, l) //nolint:errcheck // it ends with the process
	return h, nil
}
