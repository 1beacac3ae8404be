package tool

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/result"
)

var update = flag.Bool("update", false, "write testdata/commands.txt")

// TestCommands compares the command of every test with testdata/commands.txt.
func TestCommands(t *testing.T) {
	var got strings.Builder
	job := Job{Host: "10.73.0.1", Interface: "veth0", Duration: 1500 * time.Millisecond, Count: 5000}
	for _, metric := range []string{result.Latency, result.Rate, result.Bandwidth} {
		for _, test := range Tests("bin/peers", metric) {
			fmt.Fprintf(&got, "%s %s\n  %v\n  %v\n", metric, test.Title(), test.Server(job), test.Client(job))
		}
	}
	const file = "testdata/commands.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestTests: every test has an operation to compare with, and every tool has a test.
func TestTests(t *testing.T) {
	seen := map[*Tool]bool{}
	titles := map[string]bool{}
	for _, metric := range []string{result.Latency, result.Rate, result.Bandwidth} {
		for _, test := range Tests("bin/peers", metric) {
			seen[test.Tool] = true
			name := metric + " " + test.Title()
			if titles[name] || test.Metric != metric || test.Size == 0 || test.Against == "" || test.Port.Number == 0 || test.Parse == nil {
				t.Errorf("%s: %+v", name, test)
			}
			titles[name] = true
		}
	}
	for _, tool := range Peers() {
		if !seen[tool] {
			t.Errorf("%s has no test", tool.Name)
		}
	}
}

// fake creates a program in the only directory of PATH.
func fake(t *testing.T, name, text string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestVersion checks the parsing of the version output of Debian 12's tools.
func TestVersion(t *testing.T) {
	for _, tt := range []struct {
		tool                  *Tool
		program, prints, want string
	}{
		{UCX, "ucx_info", "# Version 1.13.1", "1.13.1"},
		{UCX, "ucx_info", "# Library version: 1.17.0", "1.17.0"},
		{Libfabric, "fi_info", "fi_info: 1.16.0\nlibfabric: 1.17.0\nlibfabric api: 1.17", "1.17.0"},
		{Sockperf, "sockperf", "sockperf, version 3.7-no.git", "3.7"},
		{Iperf3, "iperf3", "iperf 3.12 (cJSON 1.7.15)", "3.12"},
		{Ethtool, "ethtool", "ethtool version 6.1", "6.1"},
		{Ethtool, "ethtool", "?", ""},
		{Ethtool, "other", "?", ""},
	} {
		fake(t, tt.program, "echo '"+tt.prints+"'; exit 1\n")
		if got := tt.tool.Version(); got != tt.want {
			t.Errorf("%s prints %q: got version %q, want %q", tt.program, tt.prints, got, tt.want)
		}
	}
	if got := Net.Version(); !strings.HasPrefix(got, "go") && !strings.HasPrefix(got, "devel") {
		t.Errorf("got Go %q", got)
	}
}

// TestMissing: a missing tool names its package. A library of this program is never missing.
func TestMissing(t *testing.T) {
	fake(t, "sockperf", "")
	for _, tool := range append(Peers(), Ethtool) {
		want := tool.Program + " is not installed: apt-get install " + tool.Package
		if tool == Sockperf || tool.Program == "" {
			want = ""
		}
		if got := tool.Missing(); got != want {
			t.Errorf("%s: got %q, want %q", tool.Name, got, want)
		}
	}
}
