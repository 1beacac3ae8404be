package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/internal/result"
)

// options are what a user may choose of a measurement: rows, and where they are measured.
type options struct {
	duration time.Duration
	warmup   time.Duration
	depth    int
	signal   int
	bytes    byteSize
	ops      []string
	metric   []string
	sizes    sizeList
	mtus     []int
	repeat   int

	full        bool
	count       int64
	connections int
	churn       byteSize
	bidir       bool
	interval    time.Duration
	cpus        cpuList
	realtime    bool
	engines     []string
	impair      impairment

	transport string
	ia        string
	port      uint16
}

func defaultOptions() options {
	return options{
		duration:  defaultDuration,
		warmup:    defaultWarmup,
		bytes:     sha256Bytes,
		transport: "auto",
		engines:   []string{engineNative},
		repeat:    1,

		connections: 1,
		interval:    autoInterval,
	}
}

// Raw engines.
const (
	engineNative = "native"
	engineAsavie = "asavie"
)

// validate reports every fault, in the order of the fields.
func (c *options) validate() error {
	var errs []error
	if c.duration <= 0 {
		errs = append(errs, fmt.Errorf("--duration: %s is not a positive time", c.duration))
	}
	if c.duration > maxAskTime || c.warmup > maxAskTime-c.duration {
		errs = append(errs, fmt.Errorf("--duration and --warmup: %s is more than %s", c.duration+c.warmup, maxAskTime))
	}
	if c.warmup < 0 {
		errs = append(errs, fmt.Errorf("--warmup: %s is negative", c.warmup))
	}
	if c.depth < 0 || c.depth > maxAskDepth {
		errs = append(errs, fmt.Errorf("--depth: %d is not from 1 to %d; 0 takes the default of the metric", c.depth, maxAskDepth))
	}
	if c.signal < 0 || c.signal > maxSignal {
		errs = append(errs, fmt.Errorf("--signal: %d is not from 1 to %d; 0 takes the default", c.signal, maxSignal))
	}
	if c.repeat < 1 || c.repeat > maxRepeat {
		errs = append(errs, fmt.Errorf("--repeat: %d is not from 1 to %d", c.repeat, maxRepeat))
	}
	return oneLineOf(errs)
}

// Limits of the MTU of a lab, in bytes: what every IPv4 host takes (RFC 791), and what a veth can have.
const minMTU, maxMTU = 576, 65535

// validateFilters checks what narrows a job; an empty list narrows nothing.
func (c *options) validateFilters() error {
	errs := []error{
		someOf("op", c.ops, rowOps),
		someOf("metric", c.metric, jobMetrics),
	}
	switch {
	case c.full && !c.impair.Zero():
		errs = append(errs, errors.New("--full and --impair: each chooses rows of its own; give one of them"))
	case !c.full && c.churn != 0:
		errs = append(errs, errors.New("--churn is of a row of --full"))
	}
	errs = append(errs, c.validateChurn())
	for _, mtu := range c.mtus {
		if mtu < minMTU || mtu > maxMTU {
			errs = append(errs, fmt.Errorf("--mtu: %d is not from %d to %d", mtu, minMTU, maxMTU))
		}
	}
	return oneLineOf(errs)
}

// validateAdapter checks what names this end.
func (c *options) validateAdapter() error {
	if c.ia == "" {
		return errors.New("--ia is needed: the adapter to use, as in --ia xdp:eth0 or --ia udp:10.0.0.1")
	}
	if c.port == 0 {
		return errors.New("--port: 0 is not a port; choose one from 1 to 65535, the same on both hosts")
	}
	return nil
}

// validateWorkload checks what the user's own rows are made of. Each row has to pass fits.
func (c *options) validateWorkload(fits func(Spec) error) error {
	return oneLineOf([]error{
		c.validate(),
		oneOf("op", c.ops, []string{result.Send, result.Write, result.Read}),
		oneOf("metric", c.metric, runMetrics),
		c.validateRequests(),
		c.validateChurn(),
		c.validateSizes(),
		c.validateStreams(),
		c.validateCount(),
		c.validateEach(fits),
	})
}

// validateSizes: a write is polled for in its last aligned word, so it must have one.
func (c *options) validateSizes() error {
	for _, size := range c.sizes {
		if size > maxAskSize {
			return fmt.Errorf("--size: %s is more than %s", result.FormatSize(size), result.FormatSize(maxAskSize))
		}
		if size%8 != 0 && slices.Contains(c.ops, result.Write) && slices.Contains(c.metric, result.Latency) {
			return fmt.Errorf("--size: %d is not a multiple of 8, which the latency of a write needs", size)
		}
	}
	return nil
}

// validateRequests: a message is all that the peer's program is asked to answer.
func (c *options) validateRequests() error {
	if !slices.Contains(c.metric, result.Requests) {
		return nil
	}
	for _, op := range c.ops {
		if op != result.Send {
			return fmt.Errorf("--metric rr is of --op send, each answered by one: %s has no answer", op)
		}
	}
	return nil
}

func (c *options) validateChurn() error {
	if c.churn > churnSize {
		return fmt.Errorf("--churn: %s is more than %s", result.FormatSize(int64(c.churn)), result.FormatSize(churnSize))
	}
	return nil
}

// validateStreams: what shapes a stream says nothing of one operation after the other.
func (c *options) validateStreams() error {
	if c.connections < 1 || c.connections > maxConnections {
		return fmt.Errorf("--connections: %d is not from 1 to %d", c.connections, maxConnections)
	}
	metrics := strings.Join(c.metric, ",")
	switch stream := slices.ContainsFunc(c.metric, streams); {
	case c.connections > 1 && !stream:
		return fmt.Errorf("--connections is for --metric rate or bw: %s has one", metrics)
	case c.bidir && !stream:
		return fmt.Errorf("--bidir is for --metric rate or bw: %s goes one way", metrics)
	case c.signal != 0 && !slices.Contains(c.metric, result.Rate):
		return fmt.Errorf("--signal is for --metric rate: of %s, each operation tells of its completion", metrics)
	case c.signal != 0 && c.count > 0:
		return errors.New("--signal and --count: what is counted tells of its completion one by one; give one of them")
	case c.depth > 0 && !slices.ContainsFunc(c.metric, deep) && !slices.Contains(c.metric, result.SHA256):
		return fmt.Errorf("--depth is for --metric rate, rr or bw: %s has one operation at a time", metrics)
	}
	return nil
}

// validateEach returns the first error of a row.
func (c *options) validateEach(fits func(Spec) error) error {
	for _, r := range c.rows("") {
		if err := fits(r); err != nil {
			return err
		}
	}
	return nil
}

func (c *options) validateCount() error {
	latency := slices.ContainsFunc(c.metric, result.Timed)
	switch {
	case c.count < 0:
		return fmt.Errorf("--count: %d is negative", c.count)
	case c.count > 0 && latency && c.count < minLatencySamples:
		return fmt.Errorf("--count: %d round trips are too few for a p99.9; ask for %d or more", c.count, minLatencySamples)
	case c.interval < 0 && c.interval != autoInterval, c.interval > 0 && c.interval < minInterval:
		return fmt.Errorf("--interval: %s is not %s or more; 0 is none", c.interval, minInterval)
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
	n, err := ianame.Parse(ia)
	if err != nil || n.Kind != ianame.XDP {
		return ""
	}
	return n.Mode
}

// rows is every combination of metric, operation and size.
func (c *options) rows(transport string) []Spec {
	var out []Spec
	for _, metric := range c.metric {
		for _, op := range c.ops {
			for _, size := range c.sizesFor(metric) {
				r := c.row(op, metric, transport, size)
				r.Churn, r.Realtime = int64(c.churn), c.realtime
				out = append(out, r)
			}
		}
	}
	return out
}

func (c *options) sizesFor(metric string) []int64 {
	switch {
	case len(c.sizes) > 0:
		return c.sizes
	case metric == result.Bandwidth || metric == result.SHA256:
		return []int64{streamSize}
	}
	return []int64{defaultSize}
}

func (c *options) row(op, metric, transport string, size int64) Spec {
	r := Spec{Row: result.Row{Op: op, Metric: metric, Transport: transport, Size: size, Depth: c.depth},
		Duration: c.duration, Warmup: c.warmup, WantMode: wantMode(c.ia)}
	if streams(metric) && c.connections > 1 {
		r.Connections = c.connections
	}
	r.BothWays = streams(metric) && c.bidir
	if metric == result.Rate {
		r.Signal = c.signal
	}
	if c.count > 0 && metric != result.SHA256 {
		r.Count, r.Duration = c.count, countLimit
	}
	if metric == result.SHA256 {
		r.Bytes = int64(c.bytes)
	}
	return r
}

// intervalOf is how often a row tells how far it is: as asked, or every second of a long one.
func (c *options) intervalOf(r Spec) time.Duration {
	switch {
	case r.Metric == result.SHA256:
		return 0
	case c.interval != autoInterval:
		return c.interval
	case c.duration >= longRow || r.Count > 0:
		return time.Second
	}
	return 0
}
