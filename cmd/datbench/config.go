package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// config is what the flags of every measuring command say.
type config struct {
	json     string
	metrics  string
	duration time.Duration
	warmup   time.Duration
	depth    int
	bytes    sizeList
	ops      []string
	metric   []string
	sizes    sizeList
	mtus     []int
	engines  []string
	impair   impairment
	pcap     string

	transport string
	ia        string
	port      uint16
}

func defaultConfig() config {
	return config{
		duration:  defaultDuration,
		warmup:    defaultWarmup,
		bytes:     sizeList{sha256Bytes},
		transport: "auto",
		port:      defaultPort,
		engines:   []string{engineNative},
	}
}

// defaultPort is the UDP port of DAT traffic.
const defaultPort = 17473

// Raw engines.
const (
	engineNative = "native"
	engineAsavie = "asavie"
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
	cmd.Flags().Var(&c.impair, "impair", "lose, repeat, reorder or damage packets that are received, "+where+
		",\nas in loss=1%,dup=0.1%,reorder=2%,corrupt=0.01%,seed=7")
}

func (c *config) pcapFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.pcap, "pcap", c.pcap, "write every DAT frame, both ways as the client sees them, to this pcapng `file`;\n"+
		"it slows the rows, and grows by some 100 MB a second of bandwidth")
}

func (c *config) timeFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&c.duration, "duration", c.duration, "measured time of each row")
	f.DurationVar(&c.warmup, "warmup", c.warmup, "time before it that is left out")
}

// jobFlags shape the main job. The filters are for tests and for a second look at one row.
func (c *config) jobFlags(cmd *cobra.Command) {
	c.timeFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&c.transport, "transport", c.transport, "xdp, udp, or auto: xdp where this host can")
	f.StringSliceVar(&c.ops, "op", nil, "only these rows: raw, send, write, read, tcp, raw_asavie")
	f.StringSliceVar(&c.metric, "metric", nil, "only these metrics: lat, rate, bw")
	f.IntSliceVar(&c.mtus, "mtu", nil, "only these MTUs")
	f.Uint16Var(&c.port, "port", c.port, "UDP port of the traffic")
	for _, name := range []string{"warmup", "port", "op", "metric", "mtu"} {
		_ = f.MarkHidden(name) // the flag is there: it was defined above
	}
}

func (c *config) adapterFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.ia, "ia", c.ia, "adapter: xdp:eth0, xdp:eth0,zero-copy, udp:10.0.0.1 or auto:eth0")
	f.Uint16Var(&c.port, "port", c.port, "UDP port of the traffic, the same on both hosts")
}

func (c *config) workloadFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&c.ops, "op", []string{opSend}, "operations: send, write, read")
	f.StringSliceVar(&c.metric, "metric", []string{metricLatency}, "metrics: lat, rate, bw, sha256")
	f.Var(&c.sizes, "size", "bytes of an operation (default 64, for bw and sha256 1MiB)")
	f.IntVar(&c.depth, "depth", 0, "operations outstanding (default by metric)")
	f.Var(&c.bytes, "bytes", "bytes that a sha256 row moves")
}

// validate reports every fault, in the order of the fields.
func (c *config) validate() error {
	var errs []error
	if c.duration <= 0 {
		errs = append(errs, fmt.Errorf("--duration: %s is not a positive time", c.duration))
	}
	if c.warmup < 0 {
		errs = append(errs, fmt.Errorf("--warmup: %s is negative", c.warmup))
	}
	if c.depth < 0 {
		errs = append(errs, fmt.Errorf("--depth: %d is negative", c.depth))
	}
	return oneLineOf(errs)
}

// Limits of the MTU of a lab, in bytes: what every IPv4 host takes (RFC 791), and what a veth can have.
const minMTU, maxMTU = 576, 65535

// validateFilters checks what narrows a job; an empty list narrows nothing.
func (c *config) validateFilters() error {
	errs := []error{
		someOf("op", c.ops, []string{opRaw, opSend, opWrite, opRead, opTCP, opRawAsavie}),
		someOf("metric", c.metric, []string{metricLatency, metricRate, metricBandwidth}),
	}
	for _, mtu := range c.mtus {
		if mtu < minMTU || mtu > maxMTU {
			errs = append(errs, fmt.Errorf("--mtu: %d is not from %d to %d", mtu, minMTU, maxMTU))
		}
	}
	return oneLineOf(errs)
}

// validateAdapter checks what names this end.
func (c *config) validateAdapter() error {
	if c.ia == "" {
		return errors.New("--ia is needed: the adapter to use, as in --ia xdp:eth0 or --ia udp:10.0.0.1")
	}
	if c.port == 0 {
		return errors.New("--port: 0 is not a port; choose one from 1 to 65535, the same on both hosts")
	}
	return nil
}

// validateWorkload checks what the user's own rows are made of.
func (c *config) validateWorkload() error {
	return oneLineOf([]error{
		c.validate(),
		oneOf("op", c.ops, []string{opSend, opWrite, opRead}),
		oneOf("metric", c.metric, []string{metricLatency, metricRate, metricBandwidth, metricSHA256}),
		c.validateSizes(),
	})
}

// validateSizes: a write is polled for in its last aligned word, so it must have one.
func (c *config) validateSizes() error {
	if !slices.Contains(c.ops, opWrite) || !slices.Contains(c.metric, metricLatency) {
		return nil
	}
	for _, size := range c.sizes {
		if size%8 != 0 {
			return fmt.Errorf("--size: %d is not a multiple of 8, which the latency of a write needs", size)
		}
	}
	return nil
}

func oneLineOf(errs []error) error {
	var texts []string
	for _, err := range errs {
		if err != nil {
			texts = append(texts, err.Error())
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

// wantMode is the mode that an adapter's name asks for, as in xdp:eth0,zero-copy; empty if none.
func wantMode(ia string) string {
	kind, what, _ := strings.Cut(ia, ":")
	_, mode, _ := strings.Cut(what, ",")
	if kind != transportXDP {
		return ""
	}
	return mode
}

// rows is every combination of metric, operation and size.
func (c *config) rows(transport string) []Row {
	var out []Row
	for _, metric := range c.metric {
		for _, op := range c.ops {
			for _, size := range c.sizesFor(metric) {
				out = append(out, c.row(op, metric, transport, size))
			}
		}
	}
	return out
}

func (c *config) sizesFor(metric string) []int64 {
	switch {
	case len(c.sizes) > 0:
		return c.sizes
	case metric == metricBandwidth || metric == metricSHA256:
		return []int64{streamSize}
	}
	return []int64{defaultSize}
}

func (c *config) row(op, metric, transport string, size int64) Row {
	r := Row{Op: op, Metric: metric, Transport: transport, Size: size, Depth: c.depth,
		Duration: c.duration, Warmup: c.warmup, WantMode: wantMode(c.ia)}
	if metric == metricSHA256 {
		r.Bytes = c.bytes[0]
	}
	return r
}
