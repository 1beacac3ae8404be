package tool

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/datxdp/datxdp/internal/result"
)

// SockperfTests returns the tests with plain sockets: round trips with blocking and polled sockets, and the rate of
// small messages over TCP, which Nagle's algorithm gathers. There is no rate over UDP, where some messages would be
// lost uncounted.
func SockperfTests(metric string) []Test {
	switch metric {
	case result.Latency:
		return []Test{
			sockperf(metric, "TCP, blocking", "--tcp"),
			sockperf(metric, "TCP, polling", "--tcp", "--nonblocked"),
			sockperf(metric, "UDP, blocking"),
			sockperf(metric, "UDP, polling", "--nonblocked"),
		}
	case result.Rate:
		return []Test{sockperf(metric, "TCP, polling", "--tcp", "--nonblocked")}
	}
	return nil
}

func sockperf(metric, what string, sockets ...string) Test {
	protocol := "udp"
	if len(sockets) > 0 && sockets[0] == "--tcp" {
		protocol = "tcp"
	}
	mode, parse := []string{"throughput"}, parseSockperfRate
	if metric == result.Latency {
		mode, parse = []string{"ping-pong", "--full-rtt"}, parseSockperf
	}
	return Test{
		Tool: Sockperf, What: what, Metric: metric, Size: 64, Against: result.Send, Port: Port{protocol, 11111},
		Server: func(j Job) Command {
			return Command{Args: append([]string{Sockperf.Program, "server", "-i", j.Host}, sockets...)}
		},
		Client: func(j Job) Command {
			args := append([]string{Sockperf.Program}, mode...)
			args = append(args, "-i", j.Host, "-m", "64", "-t", strconv.Itoa(j.seconds()))
			return Command{Args: append(args, sockets...)}
		},
		Parse: parse,
	}
}

var (
	sockperfP50  = regexp.MustCompile(`percentile 50\.000 = +([\d.]+)`)
	sockperfP99  = regexp.MustCompile(`percentile 99\.000 = +([\d.]+)`)
	sockperfRate = regexp.MustCompile(`Message Rate is ([\d.]+) \[msg/sec\]`)
)

func parseSockperf(out string, r *result.Result) (err error) {
	if r.P50, err = number(sockperfP50, out); err != nil {
		return err
	}
	r.P99, err = number(sockperfP99, out)
	return err
}

func parseSockperfRate(out string, r *result.Result) error {
	v, err := number(sockperfRate, out)
	if err == nil {
		r.MsgsPerSec = *v
	}
	return err
}

// number returns the figure in the line that matches.
func number(line *regexp.Regexp, out string) (*float64, error) {
	m := line.FindStringSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("no figures in %q", LastLine(out))
	}
	v, err := strconv.ParseFloat(m[1], 64)
	return &v, err
}
