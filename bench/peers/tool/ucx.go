package tool

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// ucxOverTCP sets the variables that keep UCX from using shared memory and loopback.
func ucxOverTCP(j Job) []string { return []string{"UCX_TLS=tcp", "UCX_NET_DEVICES=" + j.Interface} }

// getNote explains slow gets. In ucx_perftest 1.13, sock_io (src/tools/perf/perftest.c) polls for 1 ms between two
// calls of the progress function.
const getNote = "the side that is read from runs its engine once a millisecond only, which is ucx_perftest's limit and not UCX's"

// UCXTests returns the tests with tags, puts and gets. Both sides poll.
func UCXTests(metric string) []Test {
	switch metric {
	case result.Latency:
		return []Test{
			ucx("tag", "tag_lat", metric, result.Send, 64, 2000),
			ucx("put", "ucp_put_lat", metric, result.Write, 64, 2000),
		}
	case result.Rate:
		return []Test{
			ucx("tag", "tag_bw", metric, result.Send, 64, 10_000),
			ucx("put", "ucp_put_bw", metric, result.Write, 64, 10_000),
		}
	}
	get := ucx("get", "ucp_get", metric, result.Read, 1<<20, 100, "-O", "8")
	get.Unfair = getNote
	return []Test{
		ucx("tag", "tag_bw", metric, result.Send, 1<<20, 200),
		ucx("put", "ucp_put_bw", metric, result.Write, 1<<20, 100),
		get,
	}
}

func ucx(what, name, metric, against string, size, first int64, more ...string) Test {
	return Test{
		Tool: UCX, What: what + " over tcp, polling", Metric: metric, Size: size, Against: against,
		FirstCount: first, Port: Port{"tcp", 13337},
		Server: func(j Job) Command { return Command{ucxOverTCP(j), []string{UCX.Program}} },
		Client: func(j Job) Command {
			args := []string{UCX.Program, j.Host, "-t", name, "-s", strconv.FormatInt(size, 10),
				"-n", strconv.FormatInt(j.Count, 10), "-w", strconv.FormatInt(max(j.Count/10, 1), 10), "-f", "-v"}
			return Command{ucxOverTCP(j), append(args, more...)}
		},
		Parse: parseUCX,
	}
}

// ucxHeader is the header line; the figures are in the next line.
const ucxHeader = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr"

// parseUCX parses the figures. Latencies are those of one direction; bandwidth is in MiB/s.
func parseUCX(out string, r *result.Result) error {
	_, line, found := strings.Cut(out, ucxHeader+"\n")
	if !found {
		return fmt.Errorf("no figures in %q", LastLine(out))
	}
	line, _, _ = strings.Cut(line, "\n")
	var v [8]float64
	fields := strings.Split(line, ",")
	for i := range v {
		if len(fields) != len(v) {
			return fmt.Errorf("not eight figures: %q", line)
		}
		var err error
		if v[i], err = strconv.ParseFloat(strings.TrimSpace(fields[i]), 64); err != nil {
			return fmt.Errorf("figures %q: %w", line, err)
		}
	}
	r.MsgsPerSec, r.Gbps = v[7], v[5]*(1<<20)*8/1e9
	if r.Metric == result.Latency {
		r.P50, r.Gbps = micros(2*v[1]), 0
		r.MsgsPerSec = 1e6 / (2 * v[3])
	}
	return nil
}
