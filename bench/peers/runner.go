package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/progressbar"
	"github.com/datxdp/datxdp/internal/result"
)

// runner measures rows, round by round.
type runner struct {
	cfg  *config
	rows []*row
	pr   progressbar.Display
	// env is the environment that datbench reports.
	env result.Env
}

// run measures everything cfg.repeat times. A failure is recorded in its row; run ends early only when ctx ends.
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

// measure measures the rows of a phase once, between two hosts that it creates.
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

// withoutOffloads switches off the offloads that cause super-frames, at both ends.
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

// peer measures a row of a peer once. Some tools accept a number of operations but no duration. peer runs such a tool
// with a small number first, and derives the number for the requested duration.
func (r *runner) peer(ctx context.Context, s *site, row *row) {
	if missing := row.test.Tool.Missing(); missing != "" {
		row.faults = []string{missing}
		return
	}
	r.pr.Begin(row.title())
	count := cmp.Or(row.count, row.test.FirstCount)
	res, err := r.once(ctx, s, row, count)
	if err == nil && row.count == 0 && count > 0 {
		if enough := int64(res.MsgsPerSec * r.cfg.duration.Seconds()); enough > 2*count {
			count = enough
			res, err = r.once(ctx, s, row, count)
		}
	}
	switch {
	case ctx.Err() != nil: // the run was interrupted: this is no fault of the peer
	case err != nil:
		row.fail("%v", err)
	default:
		row.add(res)
		if res.Valid {
			row.count = count
		}
	}
}

// maxOthers is the fraction of a core that other programs may use before a run is doubtful. It is large, because the
// kernel counts in ticks of 10 ms and a run takes some tenths of a second.
const maxOthers = 0.25

// once runs the two sides of a test. The result is invalid if other programs used too much CPU time.
func (r *runner) once(ctx context.Context, s *site, row *row, count int64) (result.Result, error) {
	res := result.Result{Row: result.Row{Op: row.op, Metric: row.metric, Size: row.size, MTU: row.phase.mtu}, Valid: true}
	job := tool.Job{Host: s.host, Interface: s.ifname, Duration: r.cfg.duration, Count: count}
	row.server, row.client = row.test.Server(job), row.test.Client(job)

	start, before := time.Now(), userTime()
	own, err := r.sides(ctx, s, row, &res)
	others := (userTime() - before - own).Seconds() / time.Since(start).Seconds()
	if others > maxOthers {
		res.Invalidate("the host is busy with something else, which had more than %g of a core", maxOthers)
	}
	if figure := res.Figure(); err == nil && (figure <= 0 || math.IsInf(figure, 0) || math.IsNaN(figure)) {
		err = fmt.Errorf("%g is no figure", figure)
	}
	return res, err
}

// sides runs a server and its client. It returns the CPU time of both in user mode.
func (r *runner) sides(ctx context.Context, s *site, row *row, res *result.Result) (own time.Duration, err error) {
	ctx, cancel := within(ctx, r.cfg.stuck())
	defer cancel()
	server, err := s.start(serverEnd, row.server)
	if err != nil {
		return 0, err
	}
	defer func() { server.stop(); own += server.cmd.ProcessState.UserTime() }()
	if err := server.await(ctx, func() bool { return listens(server.Pid(), row.test.Port) }); err != nil {
		return 0, fmt.Errorf("the server %w", err)
	}
	client, err := s.finish(ctx, clientEnd, row.client)
	if client.cmd.ProcessState != nil {
		own = client.cmd.ProcessState.UserTime()
	}
	parsed := row.test.Parse(client.out.String(), res)
	if err != nil {
		return own, fmt.Errorf("the client %w%s", err, detail(client, server, parsed))
	}
	return own, parsed
}

// detail returns what is known of a client's failure: its error line, or why its output has no figures, and the
// server's error line.
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
