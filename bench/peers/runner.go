package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/progress"
	"github.com/datxdp/datxdp/internal/result"
)

// runner measures rows, round by round.
type runner struct {
	cfg  *config
	rows []*row
	pr   progress.Display
	// env is what datbench says of this host.
	env result.Env
}

// run measures everything as often as it should be. What fails is noted at its row; only the end of ctx
// ends it early.
func (r *runner) run(ctx context.Context) error {
	for range r.cfg.repeat {
		for _, ph := range phases() {
			rows := ph.of(r.rows)
			if len(rows) == 0 {
				continue
			}
			if err := r.measure(ctx, ph, rows); err != nil {
				for _, row := range rows {
					row.fail("%v", err)
				}
			}
			if ctx.Err() != nil {
				return errInterrupted
			}
		}
	}
	return nil
}

// measure measures the rows of a phase once, between hosts that are made for it.
func (r *runner) measure(ctx context.Context, ph phase, rows []*row) (err error) {
	s, err := openSite(ph.mtu)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if ph.plain {
		if err := r.withoutOffloads(ctx, s); err != nil {
			return err
		}
	}
	r.ours(ctx, s, rows)
	for _, row := range rows {
		if row.test != nil && ctx.Err() == nil {
			r.peer(ctx, s, row)
		}
	}
	return nil
}

// withoutOffloads switches off at both ends what makes super-frames.
func (r *runner) withoutOffloads(ctx context.Context, s *site) error {
	if missing := tool.Ethtool.Missing(); missing != "" {
		return errors.New(missing)
	}
	ctx, cancel := within(ctx, r.cfg.stuck())
	defer cancel()
	for _, end := range []int{serverEnd, clientEnd} {
		p, err := s.finish(ctx, end, tool.WithoutOffloads(s.ifname))
		if err != nil {
			return fmt.Errorf("%s %w%s", tool.Ethtool.Program, err, p.because())
		}
	}
	return nil
}

// peer measures a row of a peer once. A tool that takes no time has to be told how much to do: that is
// seen in what it does with little.
func (r *runner) peer(ctx context.Context, s *site, row *row) {
	if missing := row.test.Tool.Missing(); missing != "" {
		row.faults = []string{missing}
		return
	}
	r.pr.Begin(row.title())
	count := cmp.Or(row.count, row.test.FirstCount)
	res, err := r.once(ctx, s, row, count)
	if err == nil && row.count == 0 {
		row.count = count
		if enough := int64(res.MsgsPerSec * r.cfg.duration.Seconds()); count > 0 && enough > 2*count {
			row.count = enough
			res, err = r.once(ctx, s, row, enough)
		}
	}
	switch {
	case ctx.Err() != nil: // it is not the peer's fault
	case err != nil:
		row.fail("%v", err)
	default:
		row.runs = append(row.runs, res)
	}
}

// once runs the two sides of a test.
func (r *runner) once(ctx context.Context, s *site, row *row, count int64) (result.Result, error) {
	ctx, cancel := within(ctx, r.cfg.stuck())
	defer cancel()
	t, job := row.test, tool.Job{Host: s.host, Interface: s.ifname, Duration: r.cfg.duration, Count: count}
	row.server, row.client = t.Server(job), t.Client(job)
	res := result.Result{Op: row.op, Metric: row.metric, Size: row.size, MTU: row.phase.mtu, Valid: true}

	server, err := s.start(serverEnd, row.server)
	if err != nil {
		return res, err
	}
	defer server.stop()
	if err := server.await(ctx, func() bool { return listens(server.Pid(), t.Port) }); err != nil {
		return res, fmt.Errorf("the server %w", err)
	}
	client, err := s.finish(ctx, clientEnd, row.client)
	parsed := t.Parse(client.out.String(), &res)
	if err != nil {
		return res, fmt.Errorf("the client %w%s", err, detail(client, server, parsed))
	}
	if figure := res.Figure(); parsed == nil && (figure <= 0 || math.IsInf(figure, 0) || math.IsNaN(figure)) {
		return res, fmt.Errorf("%g is no figure", figure)
	}
	return res, parsed
}

// detail is what is known of a client's failure: its error, or what it said instead of figures, and the
// server's error.
func detail(client, server *process, parsed error) (text string) {
	if line := tool.LastLine(client.err.String()); line != "" {
		text = ": " + line
	} else if client.out.String() != "" && parsed != nil {
		text = ": " + parsed.Error()
	}
	if line := tool.LastLine(server.err.String()); line != "" {
		text += "; the server: " + line
	}
	return text
}
