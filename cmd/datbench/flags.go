package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

func (c *config) jsonFlag(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.json, "json", c.json, "write results as JSON to this `file`; - prints only JSON")
}

func (c *config) metricsFlag(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.metrics, "metrics", c.metrics, "serve Prometheus /metrics on this `address` while running")
}

func (c *config) impairFlag(cmd *cobra.Command, where string) {
	cmd.Flags().Var(&c.Impair, "impair", "lose, repeat, reorder or damage received packets, "+where+
		",\nas in loss=1%,dup=0.1%,reorder=2%,corrupt=0.01%,seed=7")
}

func (c *config) busyFlag(cmd *cobra.Command, where string) {
	cmd.Flags().IntSliceVar(&c.Busy, "busy", nil, "measure beside this many busy `loops` at normal priority, "+where+
		";\n0,4 measures each row without and beside four")
}

func (c *config) pcapFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.pcap, "pcap", c.pcap, "write every DAT frame, both ways as the client sees them, to\n"+
		"this pcapng `file`; it slows the rows, and grows by some 100 MB\na second of bandwidth")
}

func (c *config) timeFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&c.Duration, "duration", c.Duration, "measured `time` of each row")
	f.DurationVar(&c.Warmup, "warmup", c.Warmup, "unmeasured `time` before each row")
	f.IntVar(&c.Repeat, "repeat", c.Repeat, "measure each row `N` times, in turns; compare needs five or more")
}

// jobFlags registers the flags of the main job. Flags such as --op, --metric and --mtu select a part of its rows.
func (c *config) jobFlags(cmd *cobra.Command) {
	c.timeFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&c.Full, "full", false, "measure more, in about 40 seconds: see above")
	f.Var(&c.Churn, "churn", "bytes of heap in the churn row of --full (default 1 GiB)")
	f.BoolVar(&c.Realtime, "realtime", true, "in that row, over XDP, both measuring threads run at real-time\npriority (SCHED_RR)")
	f.BoolVar(&c.Secure, "secure", false, "also measure the DAT rows in secure mode, with new keys: send+aes, ...")
	f.StringVar(&c.Transport, "transport", c.Transport, "`kind` of link: xdp, udp, or auto: xdp where this host can, and rows\nover udp beside it")
	f.StringSliceVar(&c.Ops, "op", nil, "only these `rows`:\n"+strings.Join(plan.RowOps, ", "))
	f.StringSliceVar(&c.Metrics, "metric", nil, "only these `metrics`: "+strings.Join(plan.JobMetrics, ", "))
	f.IntSliceVar(&c.MTUs, "mtu", nil, "only these `MTUs`: 1500, 9000, 65000; with --full 3498")
	f.Uint16Var(&c.Port, "port", c.Port, "UDP `port` of the traffic; kernel TCP has the next")
	complete(cmd, map[string][]string{"op": plan.RowOps, "metric": plan.JobMetrics, "transport": plan.Transports, "mtu": {"1500", "3498", "9000", "65000"},
		"churn": plan.ChurnSizes})
}

func (c *config) adapterFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.IA, "ia", c.IA, "`adapter`: auto:eth0, xdp:eth0, xdp:eth0,zero-copy or udp:10.0.0.1")
	f.Uint16Var(&c.Port, "port", c.Port, "UDP `port` of the traffic, the same on both hosts")
	f.Uint64Var(&c.Qualifier, "qualifier", 0, "connection qualifier of the server, the same on both hosts: several\nservers on one host need different ones (default that of datbench)")
	f.Var((*fileName)(&c.Key), "key", "`file` with the private key of this host, which datbench keygen makes:\nsecure mode")
	f.Var((*fileName)(&c.Peers), "peers", "`file` with the public keys of the peers, for secure mode")
	f.Var(&c.CPUs, "cpu", "CPUs that this side's measuring thread may run on, as in 2 or 0,4-7")
	f.BoolVar(&c.Realtime, "realtime", false, "measure at real-time priority (SCHED_RR) on this side; leave another CPU\nfor the other threads")
	completeFunc(cmd, "ia", adapterNames)
}

func (c *config) workloadFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&c.Ops, "op", []string{result.Send}, "`operations`: "+strings.Join(plan.Ops, ", "))
	f.StringSliceVar(&c.Metrics, "metric", []string{result.Latency}, "`metrics`: lat, the round trip; rate, messages a second; rr, requests\n"+
		"answered a second and their round trips, as netperf's TCP_RR; bw,\nbytes a second; sha256, moves --bytes and compares them")
	f.Var(&c.Sizes, "size", "bytes of an operation: 64, 4K, 1M, lists of them, and ranges:\n"+
		"64-1M doubles, 64-1M*4 quadruples, 64-512+64 steps\n(default 64, for bw and sha256 1M)")
	f.Int64Var(&c.Count, "count", 0, "end each row after `N` operations and not by --duration")
	f.IntVar(&c.Depth, "depth", 0, "`N` operations outstanding on each connection (default rate 512, of\nreads 128, rr 32, bw 8)")
	f.IntVar(&c.Signal, "signal", 0, "one of `N` requests of a rate row completes with an event, which reports\nthe requests before it too (default 16, with --count 1)")
	f.IntVar(&c.Connections, "connections", c.Connections, "`N` connections carry each rate and bw row, posted to in turn")
	f.BoolVar(&c.BothWays, "bidir", false, "rate and bw in both directions at once; figures are the sums")
	f.Var(&c.Churn, "churn", "at both ends, keep this many bytes of heap in small objects and replace\nthem continuously, so that the garbage collector always runs")
	f.Var(&c.Bytes, "bytes", "bytes that a sha256 row moves")
	f.Var((*interval)(&c.Interval), "interval", "print a line each `time` while a row runs; 0 for none (default 1s in rows\nof 5s and more)")
	complete(cmd, map[string][]string{"op": plan.Ops, "metric": plan.RunMetrics,
		"size": {"64", "4K", "64K", "1M", "64-1M"}, "churn": plan.ChurnSizes})
}

// interval is a flag value: a duration whose default (AutoInterval) is printed as empty.
type interval time.Duration

func (i *interval) String() string {
	if *i == plan.AutoInterval {
		return ""
	}
	return time.Duration(*i).String()
}
func (*interval) Type() string { return "time" }

func (i *interval) Set(s string) error {
	d, err := time.ParseDuration(s)
	if s == "0" || err == nil {
		*i = interval(d)
		return nil
	}
	return err
}

// fileName is a flag value: the name of a file. An empty one is refused, because a variable of the shell that is not set would
// select plaintext mode.
type fileName string

func (n *fileName) String() string { return string(*n) }
func (*fileName) Type() string     { return "file" }

func (n *fileName) Set(s string) error {
	if s == "" {
		return errors.New("it names no file")
	}
	*n = fileName(s)
	return nil
}
