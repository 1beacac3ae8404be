package tool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// LibfabricTests returns round-trip tests with fi_pingpong, the only tool that Debian has. Both sides poll.
func LibfabricTests(metric string) []Test {
	if metric != result.Latency {
		return nil
	}
	return []Test{
		libfabric("tcp", "msg", "tcp"),
		libfabric("udp;ofi_rxd", "rdm", "reliable over udp"),
		libfabric("udp", "dgram", "udp, unreliable"),
	}
}

func libfabric(provider, endpoint, what string) Test {
	args := []string{Libfabric.Program, "-p", provider, "-e", endpoint, "-S", "64", "-I"}
	with := func(j Job, more ...string) Command {
		return Command{Args: slices.Concat(args, []string{strconv.FormatInt(j.Count, 10)}, more)}
	}
	return Test{
		Tool: Libfabric, What: what + ", polling", Metric: result.Latency, Size: 64, Against: result.Send, Mean: true,
		FirstCount: 2000, Port: Port{"tcp", 47592},
		Server: func(j Job) Command { return with(j) },
		Client: func(j Job) Command { return with(j, j.Host) },
		Parse:  parseLibfabric,
	}
}

// parseLibfabric parses the line after the header. Its time is that of a transfer in one direction.
func parseLibfabric(out string, r *result.Result) error {
	_, rest, found := strings.Cut(out, "usec/xfer")
	if !found {
		return fmt.Errorf("no figures in %q", LastLine(out))
	}
	_, line, _ := strings.Cut(rest, "\n")
	line, _, _ = strings.Cut(line, "\n")
	fields := strings.Fields(line)
	if len(fields) != 8 {
		return fmt.Errorf("not eight figures: %q", line)
	}
	us, err := strconv.ParseFloat(fields[6], 64)
	if err != nil || us <= 0 {
		return fmt.Errorf("figures %q: no time of a transfer", line)
	}
	r.P50, r.MsgsPerSec = micros(2*us), 1e6/(2*us)
	return nil
}
