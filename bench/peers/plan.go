package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/result"
)

// phase is a set of measurements over one link.
type phase struct {
	mtu int
	// plain switches offloads off, so that no frame is larger than the MTU.
	plain   bool
	metrics []string
	// ops are the operations of datbench, and tools are the peers.
	ops   []string
	tools []*tool.Tool
}

// phases returns all tests at MTU 1500, the default of a veth. Bandwidth is measured again without offloads, which
// otherwise make the kernel send super-frames, and at MTUs that need no offloads.
func phases() []phase {
	bandwidth := []string{result.Bandwidth}
	ops, native := []string{result.Send, result.Write}, []*tool.Tool{tool.UCX, tool.Iperf3, tool.Net, tool.TLS}
	return []phase{
		{mtu: 1500, metrics: metrics, ops: []string{result.Send, result.Write, result.Read}, tools: tool.Peers()},
		{mtu: 1500, plain: true, metrics: bandwidth, ops: ops, tools: tool.Peers()},
		{mtu: 9000, plain: true, metrics: bandwidth, ops: ops, tools: native},
		{mtu: 65000, metrics: bandwidth, ops: ops, tools: native},
	}
}

func (p phase) title() string {
	s := fmt.Sprintf("MTU %d", p.mtu)
	if p.plain {
		s += " without tso, gso, gro"
	}
	return s
}

// of returns the phase's rows.
func (p phase) of(all []*row) (rows []*row) {
	for _, r := range all {
		if r.phase.mtu == p.mtu && r.phase.plain == p.plain {
			rows = append(rows, r)
		}
	}
	return rows
}

// row is a line of the table: an operation of datbench, or a test of a peer.
type row struct {
	phase  phase
	metric string
	size   int64
	// op is the operation of datbench; for a peer, the one it is compared with.
	op string
	// secure means secure mode; for a peer, that it is compared with op in secure mode.
	secure bool
	// test is the peer's test; nil for datbench.
	test *tool.Test

	// runs are the valid runs. doubtful runs have a figure that is not valid.
	runs, doubtful []result.Result
	server, client tool.Command
	// count is the number of operations, for a tool that accepts no duration; 0 while it is unknown.
	count int64
	// faults are the reasons for missing runs.
	faults []string
}

// title returns a short name for a progress line. All rows of datbench in one mode are measured together and have one
// title.
func (r *row) title() string {
	who := opName("datbench", r.secure)
	if r.test != nil {
		who, _, _ = strings.Cut(r.test.Title(), ",")
	}
	return fmt.Sprintf("%s at MTU %d, %s", metricTitle(r.metric), r.phase.mtu, who)
}

// opName returns the name of an operation of datbench, with its mode.
func opName(op string, secure bool) string {
	if secure {
		return op + "+aes"
	}
	return op
}

func metricTitle(metric string) string {
	switch metric {
	case result.Latency:
		return "round trip"
	case result.Rate:
		return "messages/s"
	}
	return "bandwidth"
}

// measuredWith reports whether two rows of a phase are measured by one run of datbench.
func (r *row) measuredWith(o *row) bool {
	return r.test == nil && o.test == nil && r.metric == o.metric && r.secure == o.secure
}

// steps returns the number of progress steps in a round: one per metric and mode of a phase for datbench, and one per
// peer's row.
func steps(rows []*row) (n int) {
	for i, r := range rows {
		if r.test == nil && (i == 0 || !r.measuredWith(rows[i-1])) || r.test != nil && r.test.Tool.Missing() == "" {
			n++
		}
	}
	return n
}

// add stores a run with its figure.
func (r *row) add(res result.Result) {
	if res.Valid {
		r.runs = append(r.runs, res)
		return
	}
	r.fail("%s", res.Reason)
	r.doubtful = append(r.doubtful, res)
}

// fail records why there is no figure.
func (r *row) fail(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// plan returns the rows of each phase in the order of the table. Within a metric the rows of datbench come first.
func plan(cfg *config, self string) (rows []*row) {
	for _, ph := range phases() {
		for _, metric := range ph.metrics {
			if wants(cfg.metrics, metric) {
				rows = append(rows, ph.rows(cfg, self, metric)...)
			}
		}
	}
	return rows
}

// rows returns the rows of a metric. It returns none if there is no peer to compare with. There are rows in
// secure mode if a peer encrypts.
func (p phase) rows(cfg *config, self, metric string) (rows []*row) {
	for _, t := range tool.Tests(self, metric) {
		if wants(cfg.peers, t.Tool.Name) && slices.Contains(p.tools, t.Tool) && slices.Contains(p.ops, t.Against) {
			rows = append(rows, &row{phase: p, metric: metric, size: t.Size, op: t.Against, secure: t.Secure, test: &t})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	var ours []*row
	for _, secure := range []bool{false, true} {
		if secure && !slices.ContainsFunc(rows, func(r *row) bool { return r.secure }) {
			break
		}
		for _, op := range p.ops {
			ours = append(ours, &row{phase: p, metric: metric, size: rows[0].size, op: op, secure: secure})
		}
	}
	return append(ours, rows...)
}
