package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/cmd/datbench/internal/compare"
	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// written writes a file with this text and returns its name.
func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func reportFile(t *testing.T, r result.Report) string {
	t.Helper()
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return written(t, "r.json", string(text))
}

// streamRow returns a bandwidth row.
func streamRow(op string, gbps float64) result.Result {
	return result.Result{Row: result.Row{Op: op, Metric: result.Bandwidth, Size: 64, MTU: 1500, Transport: plan.TransportXDP}, Samples: 1, Gbps: gbps, Valid: true}
}

const someBounds = `{"bounds": [
  {"op": "send", "metric": "bw", "size": 64, "mtu": 1500, "of": "gbps", "over": "raw", "target": 0.8, "bound": 0.5},
  {"op": "send", "metric": "bw", "size": 64, "mtu": 1500, "of": "gbps", "target": 40}
]}`

func TestCheckCommand(t *testing.T) {
	bounds := written(t, "bounds.json", someBounds)
	for _, tt := range []struct {
		name   string
		rows   []result.Result
		code   int
		stdout []string
		stderr string
	}{
		{"holds", []result.Result{streamRow(result.Raw, 10), streamRow(result.Send, 7)}, exitValid,
			[]string{"send         64 B  1500 Gb/s÷raw     0.70              ≥0.80 no  ≥0.50 holds\n", " ≥40.00 no        shown\n", "PASS: 1 of 1 bounds hold; 0 of 2 targets are met.\n"}, ""},
		{"fails", []result.Result{streamRow(result.Raw, 10), streamRow(result.Send, 4)}, exitInvalid,
			[]string{"≥0.50 FAILS\n", "FAIL: 1 of 1 bounds do not hold; 0 of 2 targets are met.\n"}, "datbench: 1 of 1 bounds do not hold\n"},
		{"missing", []result.Result{streamRow(result.Send, 44)}, exitInvalid,
			[]string{"MISSING bandwidth send 64 B at MTU 1500, Gb/s÷raw: no row of raw beside it\nAll rows are there after datbench --full", "1 of 2 targets are met"},
			"datbench: 1 of 1 bounds do not hold\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := inProcess(t, "check", reportFile(t, result.Report{Results: tt.rows}), "--bounds", bounds)
			if got.code != tt.code || got.stderr != tt.stderr {
				t.Errorf("exit %d, %q, want %d, %q", got.code, got.stderr, tt.code, tt.stderr)
			}
			for _, want := range tt.stdout {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("no %q in\n%s", want, got.stdout)
				}
			}
		})
	}
}

func TestCheckErrors(t *testing.T) {
	bounds, bad := written(t, "bounds.json", someBounds), written(t, "bad.json", `{"bounds": [{"opp": 1}]}`)
	good := reportFile(t, result.Report{Results: []result.Result{streamRow(result.Send, 1)}})
	early := reportFile(t, result.Report{Env: result.Env{Interrupted: true}, Results: []result.Result{streamRow(result.Send, 1)}})
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"check"}, "check needs one file of datbench --full --json: datbench check RESULT.json"},
		{[]string{"check", "/nonexistent.json"}, "open /nonexistent.json: no such file or directory"},
		{[]string{"check", early}, early + " is the result of an interrupted run: measure again"},
		{[]string{"check", good, "--bounds", "/nonexistent.json"}, "--bounds: open /nonexistent.json: no such file or directory"},
		{[]string{"check", good, "--bounds", bad}, "--bounds: " + bad + `: bound 1: json: unknown field "opp"`},
		{[]string{"check", bounds}, bounds + " has no results in it: make it with datbench --json"},
	} {
		if got := inProcess(t, tt.args...); got.code != exitUsage || got.stderr != "datbench: "+tt.want+"\n" || got.stdout != "" {
			t.Errorf("%v: exit %d, %s\nwant %s", tt.args, got.code, got.stderr, tt.want)
		}
	}
}

// TestBounds: every built-in bound belongs to a row that --full measures.
func TestBounds(t *testing.T) {
	bounds, err := readBounds("")
	if err != nil {
		t.Fatal(err)
	}
	cfg := defaultConfig()
	cfg.Full, cfg.Realtime = true, true
	var rows []result.Result
	one := 1.0
	for _, phases := range plan.MainJob(&cfg.Options, plan.Link{Transport: plan.TransportXDP, MTU: 1500}) {
		for _, ph := range phases {
			for _, row := range ph.Rows {
				r := measure.NewResult(row)
				r.P50, r.P99, r.P999, r.MsgsPerSec, r.Gbps = &one, &one, &one, 1, 1
				rows = append(rows, r)
			}
		}
	}
	for _, j := range compare.Judge(&result.Report{Results: rows}, bounds) {
		if j.Missing != "" || j.Invalid != "" {
			t.Errorf("%s, %s: %s%s", j.Title(), j.Of, j.Missing, j.Invalid)
		}
	}
}
