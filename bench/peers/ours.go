package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/result"
)

// ours measures our own rows of a phase once, as a user would: datbench server on one host, datbench run on the other.
// Both have ended before a peer is measured, because an XDP program on a veth changes the kernel's data path.
func (r *runner) ours(ctx context.Context, s *site, rows []*row) {
	for len(rows) > 0 && ctx.Err() == nil {
		n := 1
		for n < len(rows) && rows[n].measuredWith(rows[0]) {
			n++
		}
		own := rows[:n]
		rows = rows[n:]
		if own[0].test != nil {
			continue
		}
		r.pr.Begin(own[0].title())
		if err := r.own(ctx, s, own); err != nil && ctx.Err() == nil {
			for _, row := range own {
				row.fail("%v", err)
			}
		}
	}
}

// own measures our rows of one metric and mode.
func (r *runner) own(ctx context.Context, s *site, own []*row) error {
	ctx, cancel := within(ctx, r.cfg.stuck())
	defer cancel()
	var ops []string
	for _, row := range own {
		ops = append(ops, row.op)
	}
	server := tool.Command{Args: []string{r.cfg.datbench, "server", "--ia", "xdp:" + s.ifname}}
	client := tool.Command{Args: []string{r.cfg.datbench, "run", s.host, "--ia", "xdp:" + s.ifname, "--op", strings.Join(ops, ","),
		"--metric", own[0].metric, "--duration", r.cfg.duration.String(), "--warmup", warmup(r.cfg.duration).String(), "--json", "-"}}
	dir := ""
	if own[0].secure {
		var err error
		if dir, err = makeKeys(s.host); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	for _, row := range own { // the table shows the names of the files without the directory, which does not remain
		row.server, row.client = row.withKeys(server, "", serverEnd), row.withKeys(client, "", clientEnd)
	}
	server, client = own[0].withKeys(server, dir, serverEnd), own[0].withKeys(client, dir, clientEnd)
	report, err := serveAndRun(ctx, s, server, client)
	if err != nil {
		return err
	}
	r.env = report.Env
	for _, row := range own {
		row.take(report)
	}
	return nil
}

func serveAndRun(ctx context.Context, s *site, server, client tool.Command) (*result.Report, error) {
	p, err := s.start(serverEnd, server)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	if err := p.await(ctx, func() bool { return strings.HasPrefix(p.out.String(), "serving on ") }); err != nil {
		return nil, fmt.Errorf("datbench server %w", err)
	}
	c, err := s.finish(ctx, clientEnd, client)
	report := &result.Report{}
	// Exit status 1 also has a report; some of its rows are invalid.
	if parsed := json.Unmarshal([]byte(c.out.String()), report); parsed != nil {
		return nil, fmt.Errorf("datbench run %w%s", cmp.Or(err, parsed), c.because())
	}
	return report, nil
}

// take finds the row's result in a report and stores it.
func (r *row) take(report *result.Report) {
	for _, res := range report.Results {
		if res.Op != r.op || res.Metric != r.metric {
			continue
		}
		r.add(res)
		return
	}
	r.fail("datbench run has no %s of %s", r.metric, r.op)
}
