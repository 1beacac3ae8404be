package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/datxdp/datxdp/internal/result"
)

// Iperf3Tests returns the tests of kernel TCP with iperf3.
func Iperf3Tests(metric string) []Test {
	if metric != result.Bandwidth {
		return nil
	}
	return []Test{{
		Tool: Iperf3, What: "TCP", Metric: metric, Size: 1 << 20, Against: result.Send, Port: Port{"tcp", 5201},
		Server: func(Job) Command { return Command{Args: []string{Iperf3.Program, "-s", "-1"}} },
		Client: func(j Job) Command {
			return Command{Args: []string{Iperf3.Program, "-c", j.Host, "-l", "1M", "-t", strconv.Itoa(j.seconds()), "-J"}}
		},
		Parse: parseIperf3,
	}}
}

// parseIperf3 reads the receiver's figures from the JSON output.
func parseIperf3(out string, r *result.Result) error {
	var report struct {
		Error string
		End   struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return fmt.Errorf("no JSON in %q", LastLine(out))
	}
	if report.Error != "" {
		return errors.New(report.Error)
	}
	if report.End.Received.BitsPerSecond <= 0 {
		return errors.New("nothing was received")
	}
	r.Gbps = report.End.Received.BitsPerSecond / 1e9
	return nil
}
