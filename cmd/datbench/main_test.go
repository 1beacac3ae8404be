package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// asProgram is the variable that makes the test binary run as datbench. Agents inherit it.
const asProgram = "DATBENCH_TEST_RUN=1"

func TestMain(m *testing.M) {
	if os.Getenv("DATBENCH_TEST_RUN") == "1" {
		main()
	}
	os.Exit(m.Run())
}

// limit limits the run time of every datbench that a test starts.
const limit = 2 * time.Minute

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), asProgram)
	return cmd
}

// outcome is the result of a finished datbench.
type outcome struct {
	stdout, stderr string
	code           int
}

// lastLine returns the error line on standard error; findings of the doctor may follow it.
func (o outcome) lastLine() (last string) {
	for line := range strings.Lines(o.stderr) {
		if strings.HasPrefix(line, "datbench: ") || last == "" {
			last = strings.TrimSpace(line)
		}
	}
	return last
}

func outcomeOf(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func datbench(t *testing.T, args ...string) outcome {
	t.Helper()
	return outcomeOf(t, program(t, args...))
}

// TestErrors: an invalid command gives a one-line error that names the remedy, and exit status 2.
func TestErrors(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"bad flag", []string{"--foo"}, `datbench: unknown flag: --foo; see datbench --help`},
		{"bad command", []string{"foo"}, `datbench: no command "foo"; see datbench --help`},
		{"command misspelt", []string{"sever"}, `datbench: no command "sever", did you mean server?; see datbench --help`},
		{"argument too many", []string{"server", "eth0"}, `datbench: datbench server takes no argument "eth0"; see datbench server --help`},
		{"no such row", []string{"--transport", "udp", "--op", "raw"}, `datbench: nothing to measure: no row has that --op, --metric and --mtu`},
		{"bad filter", []string{"--op", "foo", "--metric", "speed"},
			`datbench: --op: "foo" is not one of raw, raw_asavie, send, write, read, stream, tcp, tcp_shared, tcp_spin; --metric: "speed" is not one of lat, rate, rr, bw`},
		{"bad MTU", []string{"selftest", "--mtu", "10,1500"}, `datbench: --mtu: 10 is not from 576 to 65535`},
		{"full and impaired", []string{"--full", "--impair", "loss=1%,seed=1"}, `datbench: --full and --impair select different rows; give one of them`},
		{"churn alone", []string{"--churn", "1G"}, `datbench: --churn needs --full: it applies to one of its rows`},
		{"churn too large", []string{"--full", "--churn", "2G"}, `datbench: --churn: 2 GiB is more than 1 GiB`},
		{"bad duration", []string{"--duration", "-1s"}, `datbench: --duration: -1s is not a positive time`},
		{"bad transport", []string{"--transport", "tcp"}, `datbench: --transport: "tcp" is not one of auto, xdp, udp`},
		{"no JSON file", []string{"--json", "/nonexistent/x"}, `datbench: --json: open /nonexistent/x: no such file or directory`},
		{"bad metrics address", []string{"--metrics", "127.0.0.1:x"}, `datbench: --metrics: listen tcp: lookup tcp/x: unknown port`},
		{"bad impairment", []string{"--impair", "loss=2"},
			`datbench: invalid argument "loss=2" for "--impair" flag: tap: loss=2: want 0% to 100%, or a fraction of 1; see datbench --help`},
		{"no capture file", []string{"--transport", "udp", "--pcap", "/nonexistent/x"}, `datbench: --pcap: open /nonexistent/x: no such file or directory`},
		{"no host", []string{"run"}, `datbench: run needs one host: datbench run HOST --ia xdp:INTERFACE, with "datbench server" on HOST`},
		{"no adapter", []string{"run", "127.0.0.2"}, `datbench: --ia is needed: the adapter to use, as in --ia xdp:eth0 or --ia udp:10.0.0.1`},
		{"no adapter to serve", []string{"server"}, `datbench: --ia is needed: the adapter to use, as in --ia xdp:eth0 or --ia udp:10.0.0.1`},
		{"no port", []string{"server", "--ia", "udp:127.0.0.1", "--port", "0"},
			`datbench: --port: 0 is not a port; choose one from 1 to 65535, the same on both hosts`},
		{"bad operation", []string{"run", "127.0.0.2", "--ia", "udp:127.0.0.1", "--op", "tcp"},
			`datbench: --op: "tcp" is not one of send, write, read`},
		{"bad metric", []string{"run", "127.0.0.2", "--ia", "udp:127.0.0.1", "--metric", "speed"},
			`datbench: --metric: "speed" is not one of lat, rate, rr, bw, sha256`},
		{"bad size", []string{"run", "127.0.0.2", "--ia", "udp:127.0.0.1", "--size", "0"},
			`datbench: invalid argument "0" for "--size" flag: "0" is not a size; write it as 64, 4KiB or 1MiB; see datbench run --help`},
		{"size without a word", []string{"run", "127.0.0.2", "--ia", "udp:127.0.0.1", "--op", "write", "--size", "12"},
			`datbench: --size: 12 is not a multiple of 8, which the latency of a write needs`},
		{"bad adapter", []string{"server", "--ia", "eth0"},
			`datbench: dat: DAT_PROVIDER_NOT_FOUND (DAT_NAME_NOT_REGISTERED): "eth0" is not an adapter: write xdp:INTERFACE, auto:INTERFACE or udp:ADDRESS; nor is it in the registry`},
		{"bad engine", []string{"raw", "--engine", "dpdk"}, `datbench: --engine: "dpdk" is not one of native, asavie`},
		{"address of a group", []string{"run", "224.0.0.1", "--ia", "udp:127.0.0.4"}, `datbench: 224.0.0.1 is the address of a group: name one host`},
		{"absent peer", []string{"run", "127.0.0.3", "--ia", "udp:127.0.0.4", "--port", "17621"},
			`datbench: 127.0.0.3 is there, but no program has the port: start "datbench server" on it, with UDP port 17621 open between the hosts`},
		{"peer without a server", []string{"run", "127.0.0.5", "--ia", "udp:127.0.0.5", "--port", "17622"},
			`datbench: 127.0.0.5 answers, but no datbench listens there: start "datbench server" on it, with UDP port 17622 open between the hosts`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := datbench(t, tt.args...)
			if got.code != exitUsage || got.lastLine() != tt.want || got.stdout != "" {
				t.Errorf("got exit %d, stdout %q\n%s\nwant exit %d\n%s", got.code, got.stdout, got.lastLine(), exitUsage, tt.want)
			}
		})
	}
}

// udpRows and xdpRows list the rows of the main job, as "metric op mtu".
var (
	udpRows = product([]string{"lat", "rate", "bw"}, []string{"send", "write", "read", "tcp"}, "")
	xdpRows = append(product([]string{"lat", "rate", "bw"}, []string{"raw", "send", "write", "read", "tcp", "raw_asavie"}, " 1500"),
		"bw raw 9000", "bw write 9000", "bw tcp 9000", "bw raw 65000", "bw write 65000", "bw tcp 65000", "bw tcp_shared 1500")
	// besideUDP lists the rows over kernel UDP that stand beside xdpRows.
	besideUDP = []string{"lat send udp 1500", "rate send udp 1500", "bw write udp 1500", "bw write udp 9000"}
)

func product(metrics, ops []string, suffix string) (rows []string) {
	for _, m := range metrics {
		for _, op := range ops {
			rows = append(rows, m+" "+op+suffix)
		}
	}
	return rows
}

// environmental matches reasons that are due to the host of the test, not to the program.
var environmental = regexp.MustCompile(`^((run|runs|each) [0-9, and]*of \d+( runs)?: )?(nothing arrived; )?(not saturated: a side had \d+( to \d+)? % of a core, the host is busy with something else|` +
	`\d+( to \d+)? samples are too few for a p99.9|measured for .*)(; |$)`)

// checkReport decodes a report, checks the fields that every report must have, and returns it.
func checkReport(t *testing.T, got outcome, data []byte) result.Report {
	t.Helper()
	var r result.Report
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Fatalf("%v in\n%s\n%s", err, data, got.stderr)
	}
	valid, starved := true, 0
	for _, res := range r.Results {
		valid = valid && res.Valid
		if res.Reason == "nothing arrived" {
			starved++
			continue
		}
		checkResult(t, res)
	}
	if starved > max(1, len(r.Results)/4) { // a short row may get no CPU time because other tests run
		t.Errorf("nothing arrived in %d of %d rows", starved, len(r.Results))
	}
	if want := map[bool]int{true: exitValid, false: exitInvalid}[valid]; got.code != want {
		t.Errorf("exit status: got %d, want %d; %s", got.code, want, got.stderr)
	}
	return r
}

func checkResult(t *testing.T, r result.Result) {
	t.Helper()
	name := r.Metric + " " + r.Op
	switch {
	case r.Valid != (r.Reason == ""):
		t.Errorf("%s: valid %t with reason %q", name, r.Valid, r.Reason)
	case !r.Valid && !environmental.MatchString(r.Reason):
		t.Errorf("%s: %s", name, r.Reason)
	case !r.Valid: // an invalid row may have almost no samples
		t.Logf("%s: %s", name, r.Reason)
	case r.Samples == 0 || r.MsgsPerSec == 0 || r.Gbps == 0 || r.Mode == "" || r.Transport == "" || r.MTU == 0:
		t.Errorf("%s: something is not filled in: %+v", name, r)
	case r.Metric == result.Latency && (r.P50 == nil || *r.P50 <= 0 || r.P99 == nil && r.Samples >= measure.MinTailSamples || r.P99 != nil && *r.P50 > *r.P99 ||
		r.P999 == nil && r.Samples >= plan.MinLatencySamples || r.P999 != nil && *r.P99 > *r.P999):
		t.Errorf("%s: percentiles: %+v", name, r)
	}
}

func rowNames(r result.Report, withMTU bool) (names []string) {
	for _, res := range r.Results {
		names = append(names, rowName(res, withMTU))
	}
	slices.Sort(names)
	return names
}

func rowName(r result.Result, withMTU bool) string {
	s := r.Metric + " " + r.Name()
	if r.Churn > 0 {
		s += " churn"
	}
	if withMTU && r.OverUDP() {
		s += " udp"
	}
	if withMTU {
		s += " " + itoa(r.MTU)
	}
	return s
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// TestMainJobUDP: the main job measures every row without root. Standard output has only the JSON.
func TestMainJobUDP(t *testing.T) {
	got := datbench(t, "--transport", "udp", "--duration", "100ms", "--warmup", "20ms", "--port", "17631", "--json", "-")
	r := checkReport(t, got, []byte(got.stdout))
	if diff := cmp.Diff(sorted(udpRows), rowNames(r, false)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if r.Env.Link == "" || r.Env.CPUs == 0 || r.Env.Kernel == "" {
		t.Errorf("environment: %+v", r.Env)
	}
}

// TestJSONFile: standard output has the table, and the file has the JSON.
func TestJSONFile(t *testing.T) {
	path := t.TempDir() + "/result.json"
	got := datbench(t, "--transport", "udp", "--duration", "50ms", "--warmup", "10ms", "--port", "17633",
		"--op", "tcp", "--metric", "bw", "--json", path)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := checkReport(t, got, data); len(r.Results) != 1 {
		t.Errorf("got %d rows, want 1", len(r.Results))
	}
	if !strings.Contains(got.stdout, "bandwidth") {
		t.Errorf("no table in %q", got.stdout)
	}
}

// TestJSONFileKept: a run that fails does not change an existing result file, and leaves no new empty one.
func TestJSONFileKept(t *testing.T) {
	dir := t.TempDir()
	old, fresh := dir+"/old.json", dir+"/fresh.json"
	if err := os.WriteFile(old, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{old, fresh} {
		got := datbench(t, "run", "127.0.0.9", "--ia", "udp:127.0.0.1", "--port", "17637", "--json", path)
		if got.code != 2 {
			t.Errorf("exit status %d, want 2: %s", got.code, got.stderr)
		}
	}
	if text, err := os.ReadFile(old); string(text) != "{}" {
		t.Errorf("the old file holds %q, %v", text, err)
	}
	if _, err := os.Stat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the new file: %v", err)
	}
}

// TestSelftestUDP: the bytes arrive unchanged with every operation.
func TestSelftestUDP(t *testing.T) {
	got := datbench(t, "selftest", "--transport", "udp", "--bytes", "20MiB", "--port", "17635", "--json", "-")
	r := checkReport(t, got, []byte(got.stdout))
	if diff := cmp.Diff([]string{"sha256 read", "sha256 send", "sha256 write"}, rowNames(r, false)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
