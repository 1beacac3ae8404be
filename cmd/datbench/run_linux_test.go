package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/ends"
	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// runUDP measures against a server, between two loopback addresses.
func runUDP(t *testing.T, port string, args ...string) outcome {
	t.Helper()
	server := start(t, "server", "--ia", "udp:127.0.0.11", "--port", port, "--cpu", ownList(t))
	server.awaitLine(t, "^serving on ")
	got := datbench(t, append([]string{"run", "127.0.0.11", "--ia", "udp:127.0.0.12", "--port", port}, args...)...)
	if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if end := server.wait(t); end.code != exitValid {
		t.Errorf("server: exit %d\n%s%s", end.code, end.stdout, end.stderr)
	}
	return got
}

// ownList returns the CPUs that this process may use.
func ownList(t *testing.T) string {
	t.Helper()
	mine, err := measure.OwnCPUs()
	if err != nil {
		t.Fatal(err)
	}
	return mine.String()
}

// TestConnectionsBothWays: rows with several connections and both directions measure exactly the requested number of
// operations, and the figures add up.
func TestConnectionsBothWays(t *testing.T) {
	got := runUDP(t, "17661", "--op", "send,write,read", "--metric", "rate,bw", "--size", "72", "--count", "500", "--depth", "16",
		"--connections", "3", "--bidir", "--warmup", "10ms", "--repeat", "2", "--cpu", ownList(t), "--json", "-")
	r := checkReport(t, got, []byte(got.stdout))
	if len(r.Results) != 6 {
		t.Fatalf("got %d rows, want 6", len(r.Results))
	}
	for _, res := range r.Results {
		name := res.Metric + " " + res.Op
		if res.Connections != 3 || res.Depth != 16 || res.Bidir == nil {
			t.Errorf("%s: %+v", name, res)
			continue
		}
		if ways := res.Bidir.InGbps + res.Bidir.OutGbps; res.Valid && (ways < 0.1*res.Gbps || res.Bidir.InGbps <= 0 || res.Bidir.OutGbps <= 0) {
			t.Errorf("%s: %+v of %f Gb/s", name, *res.Bidir, res.Gbps)
		}
		if res.Valid && (res.Samples != 2*2*500 || len(res.Runs) != 2) {
			t.Errorf("%s: got %d samples in runs %v, want 2000 in two", name, res.Samples, res.Runs)
		}
	}
}

// With --signal N, one of N requests of a connection has a completion event, which also reports the requests before it.
// TestSignal: a row must come to its end, whatever N is. It would wait for ever if the last requests of a connection,
// which may be fewer than N, were not reported.
func TestSignal(t *testing.T) {
	for _, tt := range []struct{ signal, depth string }{{"8", "8"}, {"3", "8"}, {"1", "8"}, {"0", "64"}} {
		for _, ways := range []string{"--bidir", "--bidir=false"} {
			got := runUDP(t, "17667", "--op", "send,write,read", "--metric", "rate", "--signal", tt.signal, "--depth", tt.depth,
				"--connections", "3", ways, "--duration", "30ms", "--warmup", "5ms", "--json", "-")
			r := checkReport(t, got, []byte(got.stdout))
			if len(r.Results) != 3 {
				t.Fatalf("%+v %s: got %d rows, want 3", tt, ways, len(r.Results))
			}
			for _, res := range r.Results {
				want := map[string]int{"8": 8, "3": 3, "1": 1, "0": 0}[tt.signal]
				if res.Signal != want {
					t.Errorf("%s %+v %s: got signal %d, want %d", res.Op, tt, ways, res.Signal, want)
				}
			}
		}
	}
}

// TestServerOutlivesClient: if a client ends during its row, the server logs this and serves the next client. If the
// server itself is terminated during a row, it logs this too, and exits without an error.
func TestServerOutlivesClient(t *testing.T) {
	server := start(t, "server", "--ia", "udp:127.0.0.11", "--port", "17669")
	server.awaitLine(t, "^serving on ")
	for _, end := range []struct {
		who func(client *running) *running
		// told is the server's log text about the row, and code is the client's exit status.
		told   string
		signal syscall.Signal
		code   int
	}{
		{func(client *running) *running { return client }, "the peer ended the connection", syscall.SIGTERM, exitInvalid},
		{func(client *running) *running { return client }, "the connection broke: .*", syscall.SIGKILL, -1},
		{func(*running) *running { return server }, "context canceled", syscall.SIGTERM, exitUsage},
	} {
		client := start(t, "run", "127.0.0.11", "--ia", "udp:127.0.0.12", "--port", "17669", "--op", "send", "--metric", "bw",
			"--duration", "10m", "--interval", "20ms")
		client.awaitLine(t, `^ +0\.\d\d-\d`)
		if err := end.who(client).cmd.Process.Signal(end.signal); err != nil {
			t.Fatal(err)
		}
		signalled := time.Now()
		server.awaitLine(t, `^127\.0\.0\.12: bandwidth send 1 MiB: `+end.told+`$`)
		if took := time.Since(signalled); took > workload.KeepAlive+workload.Silence {
			t.Errorf("the server was told after %s, as if nobody had answered for the dead", took)
		}
		if got := client.wait(t); got.code != end.code {
			t.Errorf("client: exit %d, want %d\n%s%s", got.code, end.code, got.stdout, got.stderr)
		}
	}
	if got := server.wait(t); got.code != exitValid {
		t.Errorf("server: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// TestRowsAsTheyFinish: the progress shows each measured row while the job still runs. Row n is shown at the latest
// when row n+2 begins. Without a terminal the output has no control characters.
func TestRowsAsTheyFinish(t *testing.T) {
	s := serveHere(t, "udp:127.0.0.21", 17681, ends.FullAllowance)
	args := []string{"--size", "64,128,192", "--duration", "300ms", "--warmup", "1ms"}
	job := start(t, s.clientArgs("127.0.0.23", args...)...)
	job.awaitLine(t, `^round trip send 64 B at MTU \d+: p50 .* µs`)
	job.awaitLine(t, `^\[ 3/3\] `)
	job.awaitLine(t, `^round trip send 192 B at MTU \d+: p50 .* µs`)
	job.awaitLine(t, `^op +size +min µs`)
	got := job.wait(t)
	if odd := regexp.MustCompile(`[^\n\PC]`).FindString(got.stdout + got.stderr); odd != "" {
		t.Errorf("control character %q in\n%s\n%s", odd, got.stdout, got.stderr)
	}
	single := datbench(t, s.clientArgs("127.0.0.23", "--duration", "20ms", "--warmup", "1ms")...)
	if n := strings.Count(single.stdout, "round trip"); n > 2 || strings.Contains(single.stdout, ": p50 ") { // once in the title, once in a reason
		t.Errorf("the only row is told of twice:\n%s", single.stdout)
	}
}

// TestCountOps: --count also works in one direction and with every metric.
func TestCountOps(t *testing.T) {
	got := runUDP(t, "17663", "--op", "send", "--metric", "lat,rate", "--count", "1000", "--warmup", "5ms", "--json", "-")
	for _, res := range checkReport(t, got, []byte(got.stdout)).Results {
		if res.Samples != 1000 || res.Metric == result.Latency && res.Histogram.Total() != 1000 {
			t.Errorf("%s %s: got %d samples, %d in the histogram, want 1000", res.Metric, res.Op, res.Samples, res.Histogram.Total())
		}
	}
}

// TestIntervals: intervals are printed while a row runs. Their sum equals the figures in the JSON.
func TestIntervals(t *testing.T) {
	file := t.TempDir() + "/r.json"
	got := runUDP(t, "17665", "--op", "send", "--metric", "lat,bw", "--size", "4K", "--duration", "300ms", "--warmup", "5ms", "--interval", "100ms", "--json", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ +\d+\.\d\d-\d+\.\d\d .* \d+$`)
	var r result.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, res := range r.Results {
		told += len(res.Intervals)
		end := 0.0
		for _, i := range res.Intervals {
			if i.Start < end || i.End <= i.Start {
				t.Errorf("%s: %+v after %f", res.Metric, i, end)
			}
			end = i.End
		}
		if end < 0.25 {
			t.Errorf("%s: intervals end at %f s", res.Metric, end)
		}
	}
	if n := len(line.FindAllString(got.stdout, -1)); n != told || told < 2 {
		t.Errorf("got %d lines, %d intervals:\n%s", n, told, got.stdout)
	}
	if !strings.Contains(got.stdout, "round trip send 4 KiB") || !strings.Contains(got.stdout, "transferred") {
		t.Errorf("no headings in\n%s", got.stdout)
	}
}
