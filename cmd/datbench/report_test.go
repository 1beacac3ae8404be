package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// resultFile writes a file with one row that has these runs.
func resultFile(t *testing.T, name string, runs ...float64) string {
	t.Helper()
	r := result.Report{Results: []result.Result{{Row: result.Row{Op: result.Send, Metric: result.Bandwidth, Size: 64, MTU: 1500, Transport: plan.TransportXDP},
		Samples: 1, Gbps: runs[0], Valid: true, Runs: runs}}}
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// inProcess runs datbench in this process.
func inProcess(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, nil, &stdout, &stderr)
	return outcome{stdout.String(), stderr.String(), code}
}

func TestReportCommand(t *testing.T) {
	in, out := resultFile(t, "in.json", 5), filepath.Join(t.TempDir(), "out.html")
	got := inProcess(t, "report", in, "-o", out)
	page, err := os.ReadFile(out)
	if err != nil || got.code != exitValid || !strings.Contains(string(page), "<svg") || !strings.HasPrefix(got.stdout, out+": 1 file") {
		t.Errorf("exit %d, %v, %s%s", got.code, err, got.stdout, got.stderr)
	}
	if got := inProcess(t, "report", in, in, "-o", "-"); got.code != exitValid || !strings.HasPrefix(got.stdout, "<!DOCTYPE html>") {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
}

func TestCompareCommand(t *testing.T) {
	old, slow := resultFile(t, "old.json", 10, 10.1, 10.2, 10.3), resultFile(t, "new.json", 9, 9.1, 9.2, 9.3)
	got := inProcess(t, "compare", old, slow)
	if got.code != exitValid || !strings.Contains(got.stdout, "-9.9%  0.029   4+4 worse") {
		t.Errorf("exit %d:\n%s%s", got.code, got.stdout, got.stderr)
	}
	for line := range strings.Lines(got.stdout) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if got := inProcess(t, "compare", old+","+old, slow, "--fail-on-regression", "9"); got.code != exitInvalid ||
		got.stderr != "datbench: 1 of 1 rows are worse than --fail-on-regression allows: more than 9 %\n" || !strings.Contains(got.stdout, "8+4 worse") {
		t.Errorf("exit %d:\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := inProcess(t, "compare", old, slow, "--fail-on-regression", "11"); got.code != exitValid {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
	single := resultFile(t, "one.json", 3)
	if got := inProcess(t, "compare", old, single); got.code != exitValid || !strings.Contains(got.stdout, "1 of 1 rows have too few runs to tell") {
		t.Errorf("exit %d:\n%s", got.code, got.stdout)
	}
}

// TestFilesPrintable: control characters in a file are not sent to the terminal.
func TestFilesPrintable(t *testing.T) {
	in := resultFile(t, "in.json", 5, 6)
	text, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte(`"send"`), []byte(`"a\u001b[31mred\u009b"`))
	text = bytes.ReplaceAll(text, []byte(`"xdp"`), []byte(`"x\n\u001b]0;b\u0007"`))
	if err := os.WriteFile(in, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got := inProcess(t, "compare", in, in)
	if got.code != exitValid || !strings.Contains(got.stdout, "a?[31mred?") || !strings.Contains(got.stdout, "x??]0;b?") ||
		strings.ContainsAny(got.stdout, "\x1b\u009b\a") {
		t.Errorf("exit %d:\n%q", got.code, got.stdout)
	}
}

func TestFileErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.json")
	if err := os.WriteFile(empty, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := resultFile(t, "good.json", 1)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"report"}, "report needs files that datbench --json wrote; see datbench report --help"},
		{[]string{"report", "/nonexistent.json"}, "open /nonexistent.json: no such file or directory"},
		{[]string{"report", empty}, empty + " has no results in it: make it with datbench --json"},
		{[]string{"report", good, "-o", "/nonexistent/x"}, "--output: open /nonexistent/x: no such file or directory"},
		{[]string{"compare", good}, "compare needs two sets of files: datbench compare OLD.json NEW.json, each a file or several with commas between"},
		{[]string{"compare", good, "/nonexistent.json"}, "open /nonexistent.json: no such file or directory"},
		{[]string{"compare", good, good, "--fail-on-regression", "-3"}, "--fail-on-regression: -3 is not a percentage from 0 to 100"},
	} {
		if got := inProcess(t, tt.args...); got.code != exitUsage || got.stderr != "datbench: "+tt.want+"\n" || got.stdout != "" {
			t.Errorf("%v: exit %d, %s\nwant %s", tt.args, got.code, got.stderr, tt.want)
		}
	}
}

// TestPartial: the results of an interrupted run are shown and marked as incomplete.
func TestPartial(t *testing.T) {
	r := &result.Report{Env: result.Env{Interrupted: true}, Results: []result.Result{{Row: result.Row{Op: result.Send, Metric: result.Rate}, Valid: true}}}
	var b bytes.Buffer
	out := &output{table: &b, json: &b}
	if err := out.finish(r, agent.ErrInterrupted); err != agent.ErrInterrupted || !strings.Contains(b.String(), "Ended early: ") || !strings.Contains(b.String(), `"interrupted": true`) {
		t.Errorf("got %v\n%s", err, b.String())
	}
	if err := out.finish(nil, result.ErrInvalid); err != result.ErrInvalid {
		t.Errorf("without a report: %v", err)
	}
}
