package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/result"
)

// Report is the content of the JSON file.
type Report struct {
	Env      result.Env `json:"env"`
	Versions []Version  `json:"versions"`
	// Repeat is the number of runs of each row, and Duration the time of each.
	Repeat   int    `json:"repeat"`
	Duration string `json:"duration"`
	// Offloads is the command that switched offloads off, for rows without them.
	Offloads string `json:"offloads_off"`
	Rows     []Row  `json:"rows"`
}

// Version is the version of a tool.
type Version struct {
	Tool    string `json:"tool"`
	Version string `json:"version"`
	Package string `json:"package,omitempty"`
}

// Row is a line of the table. Figures are µs of a full round trip, messages per second, or Gb/s.
type Row struct {
	// Peer is what was measured: datxdp, or a tool and its test.
	Peer   string `json:"peer"`
	Metric string `json:"metric"`
	Size   int64  `json:"size"`
	MTU    int    `json:"mtu"`
	// Offloads means that the kernel used TSO, GSO and GRO.
	Offloads bool `json:"offloads"`
	// Figure is the median of Runs. For a latency, a run is the p50, or the mean if Mean is set. 0 means no figure.
	Figure float64   `json:"figure"`
	P99    *float64  `json:"p99_us,omitempty"`
	Mean   bool      `json:"mean,omitempty"`
	Runs   []float64 `json:"runs"`
	// Op is the operation of datbench that the peer is compared with, with +aes in secure mode, and Ours is its figure. Ratio
	// is above 1 if datbench is better.
	Op      string   `json:"op"`
	Ours    *float64 `json:"ours,omitempty"`
	OursP99 *float64 `json:"ours_p99_us,omitempty"`
	Ratio   *float64 `json:"ratio,omitempty"`
	// Server and Client are the commands of the two sides.
	Server string `json:"server"`
	Client string `json:"client"`
	// Valid means that every run has a figure; otherwise Reason is set. Note is a remark about a figure.
	Valid  bool   `json:"valid"`
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note,omitempty"`

	tool string
	// sound means that at least one run is valid.
	sound bool
}

// ownName is the name of datxdp where the row of a peer has the name of its tool.
const ownName = "datxdp"

// own reports whether the row belongs to datbench.
func (r *Row) own() bool { return r.tool == ownName }

// newReport returns the report of the measured rows.
func newReport(cfg *config, rows []*row, env result.Env) *Report {
	r := &Report{Env: env, Repeat: cfg.repeat, Duration: cfg.duration.String(), Offloads: tool.WithoutOffloads("veth0").String(), Versions: versions(rows, env)}
	for _, metric := range metrics {
		for _, row := range rows {
			if row.metric == metric {
				r.Rows = append(r.Rows, row.summary())
			}
		}
	}
	for i := range r.Rows {
		r.Rows[i].compare(r.Rows)
	}
	return r
}

// summary returns a row of the report, without the comparison.
func (r *row) summary() Row {
	out := Row{Peer: ownName + " " + opName(r.op, r.secure), tool: ownName, Metric: r.metric, Size: r.size, MTU: r.phase.mtu,
		Offloads: !r.phase.plain, Op: opName(r.op, r.secure), Server: r.server.String(), Client: r.client.String(),
		Valid: len(r.faults) == 0 && len(r.runs) > 0, Reason: r.reason(), sound: len(r.runs) > 0}
	if t := r.test; t != nil {
		out.Peer, out.tool = t.Title(), t.Tool.Title
		out.Mean, out.Note = t.Mean, t.Unfair
	}
	runs := r.runs
	if !out.sound {
		runs = r.doubtful
	}
	out.measured(runs)
	return out
}

// reason returns why runs have no figure.
func (r *row) reason() string {
	var different []string
	for _, f := range r.faults {
		if !slices.Contains(different, f) {
			different = append(different, f)
		}
	}
	text := strings.Join(different, "; ")
	if len(r.faults) > 0 && len(r.runs) > 0 {
		text = fmt.Sprintf("%d of %d runs: %s", len(r.faults), len(r.faults)+len(r.runs), text)
	}
	return text
}

// measured stores the figures of runs in the row.
func (r *Row) measured(runs []result.Result) {
	var tails []float64
	for _, run := range runs {
		r.Runs = append(r.Runs, run.Figure())
		if run.P99 != nil {
			tails = append(tails, *run.P99)
		}
	}
	r.Figure = median(r.Runs)
	if len(tails) > 0 {
		p99 := median(tails)
		r.P99 = &p99
	}
}

// median returns the median of the values; 0 if there are none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// compare stores datbench's figure for the same operation and link, and the ratio.
func (r *Row) compare(all []Row) {
	if r.own() {
		return
	}
	i := slices.IndexFunc(all, func(o Row) bool {
		return o.own() && o.Op == r.Op && o.Metric == r.Metric && o.MTU == r.MTU && o.Offloads == r.Offloads
	})
	if i < 0 || all[i].Figure == 0 {
		return
	}
	ours := all[i].Figure
	r.Ours, r.OursP99 = &ours, all[i].P99
	if !r.sound || !all[i].sound || r.Note != "" {
		return
	}
	ratio := ours / r.Figure
	if r.Metric == result.Latency {
		ratio = 1 / ratio
	}
	r.Ratio = &ratio
}

// versions returns the versions of the measured programs and of their environment.
func versions(rows []*row, env result.Env) []Version {
	out := []Version{{Tool: ownName, Version: cmp.Or(env.Version, "not measured")}}
	plain := false
	for _, t := range tool.Peers() {
		if slices.ContainsFunc(rows, func(r *row) bool { return r.test != nil && r.test.Tool == t }) {
			out = append(out, Version{t.Title, cmp.Or(t.Version(), "not there"), t.Package})
		}
	}
	for _, r := range rows {
		plain = plain || r.phase.plain
	}
	if plain {
		out = append(out, Version{tool.Ethtool.Title, cmp.Or(tool.Ethtool.Version(), "not there"), tool.Ethtool.Package})
	}
	return out
}

// JSON returns the report in the format of a file.
func (r *Report) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}

// verdict returns nil if every row has its figures.
func (r *Report) verdict() error {
	bad := 0
	for _, row := range r.Rows {
		if !row.Valid {
			bad++
		}
	}
	if bad == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d results are %w", bad, len(r.Rows), errInvalid)
}
