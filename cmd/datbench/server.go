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
	"github.com/datxdp/datxdp/internal/result"
)

// datTarget serves initiators one after another. One goroutine answers their requests, asleep until one comes, another
// measures.
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
	door   *door
	// most is what one row may take.
	most allowance
	// refusals keeps those who are refused from filling the log.
	refusals sampler
	// log, if not nil, says what it does, and which rows failed.
	log func(format string, args ...any)
	// mu guards err, which is what ended serve, and rowErr, the first row that failed and was not logged.
	mu          sync.Mutex
	err, rowErr error
}

func newDATTarget(h *host, s station) (target, error) {
	return openTarget(context.Background(), h, s, fullAllowance, nil)
}

func openTarget(ctx context.Context, h *host, s station, most allowance, log func(string, ...any)) (t *datTarget, err error) {
	t = &datTarget{log: log, stop: func() {}, cpus: s.CPUs, realtime: s.Realtime, most: most, door: newDoor()}
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
	for _, part := range []func(context.Context) error{t.answer, t.serve} {
		t.wg.Go(func() { t.end(part(t.served)) })
	}
	return t, nil
}

// end ends both parts with one of them.
func (t *datTarget) end(err error) {
	t.mu.Lock()
	t.err = errors.Join(t.err, err)
	t.mu.Unlock()
	t.stop()
}

// backlog is connection requests that wait for an answer, which they get at once.
const backlog = 64

// answer tells everybody who asks at once whether the target takes the request.
func (t *datTarget) answer(ctx context.Context) error {
	var ev dat.Event
	for {
		_, err := t.crs.WaitContext(ctx, 1, &ev)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("waiting for requests: %w", err)
		case ev.Number == dat.EventConnectionRequest:
			t.admit(ev.CR)
		}
	}
}

// admit has a request wait for its turn, or refuses it.
func (t *datTarget) admit(cr *dat.CR) {
	peer, err := cr.Query()
	if err != nil {
		return // it was withdrawn
	}
	r := request{cr: cr, from: peer.RemoteAddress}
	if r.ask, err = decodeAsk(peer.PrivateData); err == nil {
		err = t.permits(r.ask)
	}
	if err != nil {
		if t.refusals.allow(time.Now()) {
			t.fail("%v: refused: %w%s", r.from, err, t.refusals.note())
		}
	} else {
		err = t.door.enter(r)
	}
	if err != nil {
		_ = refuse(cr, err.Error()) // it has given up meanwhile
	}
}

// permits is whether a request stays within what the target gives.
func (t *datTarget) permits(a ask) error {
	w, err := workloadFor(a.row.Op, a.row.Metric, a.row.BothWays)
	if err != nil {
		return err
	}
	_, sh := w.shape(a.row)
	return t.most.permits(a.row, sh)
}

// serve serves each request that is taken to its end.
func (t *datTarget) serve(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	release, err := pin(t.cpus)
	if err != nil {
		return err
	}
	defer release()
	for {
		r, refused, ok := t.door.take(ctx)
		if !ok {
			return nil
		}
		for _, other := range refused {
			_ = refuse(other.cr, t.door.refusal().Error()) // it has given up meanwhile
		}
		t.door.leave(t.serveOne(ctx, r) && r.ask.row.More)
	}
}

// fail logs or notes a row that failed; those that follow follow from the first.
func (t *datTarget) fail(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch err := fmt.Errorf(format, args...); {
	case t.log != nil:
		t.log("%s", oneLine(err.Error()))
	case t.rowErr == nil:
		t.rowErr = err
	}
}

// serveOne is whether the row was served to its end.
func (t *datTarget) serveOne(ctx context.Context, r request) bool {
	row := r.ask.row
	start := time.Now()
	tally, err := t.serveRow(ctx, r)
	if err != nil {
		t.fail("%v: %s: %w", r.from, row.Title(), err)
		return false
	}
	if t.log != nil {
		t.log("%v: %s, depth %d: served in %.1f s; %d resent, %d dropped here", r.from, row.Title(), row.depth(),
			time.Since(start).Seconds(), tally.retransmits, tally.drops)
	}
	return true
}

// serveRow accepts, plays the passive side and sends the tally.
func (t *datTarget) serveRow(ctx context.Context, r request) (sum tally, err error) {
	asked := r.ask
	w, err := workloadFor(asked.row.Op, asked.row.Metric, asked.row.BothWays)
	if err != nil {
		return sum, errors.Join(err, refuse(r.cr, err.Error()))
	}
	_, sh := w.shape(asked.row)
	c, err := newConn(ctx, t.a, asked.row, sh)
	if err != nil {
		return sum, errors.Join(err, refuse(r.cr, err.Error()))
	}
	defer func() { err = errors.Join(err, c.free()) }()
	if err := t.accept(c, r.cr, asked); err != nil {
		return sum, err
	}
	c.extend()
	c.watch = newWatch(r.from, asked.row)
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
	t.door.over()
	return sum, c.farewell()
}

// accept makes the row's connections: that of the first request, and of those that follow it. All of them have to be
// there soon.
func (t *datTarget) accept(c *conn, cr *dat.CR, first ask) error {
	c.remote = first.remote
	if err := c.receiveAll(); err != nil {
		return errors.Join(err, refuse(cr, err.Error()))
	}
	c.deadline = time.Now().Add(patience + time.Duration(len(c.eps))*joinTime)
	for i := range c.eps {
		if i > 0 {
			var err error
			if cr, err = t.gather(c, first, i); err != nil {
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

// gather waits for the row's request of that index.
func (t *datTarget) gather(c *conn, first ask, index int) (*dat.CR, error) {
	soon := time.NewTimer(time.Until(c.deadline))
	defer soon.Stop()
	for {
		select {
		case r := <-t.door.joins:
			if r.ask.session == first.session && r.ask.index == index {
				return r.cr, nil
			}
			_ = refuse(r.cr, errSpec.Error()) // it has given up meanwhile
		case <-soon.C:
			return nil, fmt.Errorf("connection %d of %d did not come", index+1, first.row.Connections)
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
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
	cfg, most := defaultConfig(), allowance{maxAskBytes, serverHeap}
	c := &cobra.Command{
		Use:   "server",
		Short: "Serve datbench run, one client after another",
		Example: `  datbench server --ia xdp:eth0
  datbench server --ia auto:eth0 --cpu 3 --metrics 127.0.0.1:9404`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runServer(cmd.Context(), &cfg, most)
		},
	}
	cfg.metricsFlag(c)
	cfg.adapterFlags(c)
	cfg.impairFlag(c, "at this end")
	c.Flags().Var(&most.buffers, "memory", "most bytes of buffers for a client, committed\nas they are used")
	c.Flags().Var(&most.heap, "churn", "most bytes of heap that a client may have churned here")
	complete(c, map[string][]string{"churn": churnSizes})
	return c
}

func (a *app) runServer(ctx context.Context, cfg *config, most allowance) error {
	if err := cfg.validateAdapter(); err != nil {
		return err
	}
	if err := mayUse(cfg.cpus); err != nil {
		return err
	}
	h, err := a.newHost(ctx, cfg.metrics)
	if err != nil {
		return err
	}
	s := station{Kind: kindDAT, IA: cfg.ia, Port: cfg.port, Impair: cfg.impair.text(), CPUs: cfg.cpus, Realtime: cfg.realtime}
	t, err := openTarget(ctx, h, s, most, func(format string, args ...any) { fmt.Fprintf(a.stdout, format+"\n", args...) })
	if err != nil {
		return err
	}
	attr := t.a.attr
	fmt.Fprintf(a.stdout, "serving on %v, UDP port %d: %s, mode %s%s\n", attr.Address, attr.Port, cfg.ia, attr.Mode, result.Row{Impair: cfg.impair.text()}.Conditions())
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
