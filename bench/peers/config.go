package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/result"
)

// config holds the values of the flags.
type config struct {
	duration time.Duration
	repeat   int
	limit    time.Duration
	peers    []string
	metrics  []string
	json     string
	markdown string
	datbench string
}

func defaultConfig() *config {
	return &config{duration: time.Second, repeat: 3, datbench: "bin/datbench"}
}

func (c *config) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.DurationVar(&c.duration, "duration", c.duration, "measured `time` of each run; sockperf and iperf3 take whole seconds")
	f.IntVar(&c.repeat, "repeat", c.repeat, "measure everything `N` times, in turns; figures are medians")
	f.StringSliceVar(&c.peers, "peer", nil, "only these `peers`: "+strings.Join(peerNames(), ", "))
	f.StringSliceVar(&c.metrics, "metric", nil, "only these `metrics`: "+strings.Join(metrics, ", "))
	f.StringVar(&c.markdown, "markdown", "", "write the table as Markdown to this `file`")
	f.StringVar(&c.json, "json", "", "write the table as JSON to this `file`")
	f.DurationVar(&c.limit, "limit", 0, "`time` after which a run counts as stuck (default 15s and ten times --duration)")
	f.StringVar(&c.datbench, "datbench", c.datbench, "`program` that measures ours")
}

var metrics = []string{result.Latency, result.Rate, result.Bandwidth}

func peerNames() (names []string) {
	for _, t := range tool.Peers() {
		names = append(names, t.Name)
	}
	return names
}

// maxRepeat limits a run to a time that a user may wait for.
const maxRepeat = 100

// validate reports every fault, in the order of the fields.
func (c *config) validate() error {
	var errs []error
	if c.duration < time.Millisecond {
		errs = append(errs, fmt.Errorf("--duration: %s is not 1ms or more", c.duration))
	}
	if c.repeat < 1 || c.repeat > maxRepeat {
		errs = append(errs, fmt.Errorf("--repeat: %d is not from 1 to %d", c.repeat, maxRepeat))
	}
	if c.limit < 0 {
		errs = append(errs, fmt.Errorf("--limit: %s is negative", c.limit))
	}
	return errors.Join(append(errs, someOf("peer", c.peers, peerNames()), someOf("metric", c.metrics, metrics))...)
}

func someOf(flag string, got, known []string) error {
	for _, g := range got {
		if !slices.Contains(known, g) {
			return fmt.Errorf("--%s: no %q: choose of %s", flag, g, strings.Join(known, ", "))
		}
	}
	return nil
}

// wants reports whether a list of names selects a name; an empty list selects all.
func wants(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }

// stuck returns the time after which a run counts as stuck.
func (c *config) stuck() time.Duration {
	if c.limit > 0 {
		return c.limit
	}
	return 15*time.Second + 10*c.duration
}

// warmup returns the warm-up time before a measurement of this duration.
func warmup(duration time.Duration) time.Duration { return duration / 10 }
