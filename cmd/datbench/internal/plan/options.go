package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/internal/result"
)

// Options are the user's choices: which rows to measure, how, and over which adapter.
type Options struct {
	Duration time.Duration
	Warmup   time.Duration
	Depth    int
	Signal   int
	Bytes    ByteSize
	Ops      []string
	Metrics  []string
	Sizes    SizeList
	MTUs     []int
	Repeat   int

	Full        bool
	Count       int64
	Connections int
	Churn       ByteSize
	// Busy are the numbers of busy loops beside which each row is measured; empty for none.
	Busy     []int
	BothWays bool
	Interval time.Duration
	CPUs     CPUList
	Realtime bool
	Engines  []string
	Impair   Impairment

	Transport string
	IA        string
	Port      uint16
	Qualifier uint64 // of the server; 0 selects that of datbench

	// Secure adds rows in secure mode to the main job. Key and Peers are the files of the adapter, as in dat.Security, and
	// PeerKey is the public key of the server or its name in the file of peers.
	Secure  bool
	Key     string
	Peers   string
	PeerKey string
}

func DefaultOptions() Options {
	return Options{
		Duration:  defaultDuration,
		Warmup:    defaultWarmup,
		Bytes:     sha256Bytes,
		Transport: "auto",
		Engines:   []string{EngineNative},
		Repeat:    1,

		Connections: 1,
		Interval:    AutoInterval,
	}
}

// Raw engines.
const (
	EngineNative = "native"
	engineAsavie = "asavie"
)

// Validate checks the options that all commands have. It returns every invalid one, in the order of the fields.
func (c *Options) Validate() error {
	var errs []error
	if c.Duration <= 0 {
		errs = append(errs, fmt.Errorf("--duration: %s is not a positive time", c.Duration))
	}
	if c.Duration > MaxDuration || c.Warmup > MaxDuration-c.Duration {
		errs = append(errs, fmt.Errorf("--duration and --warmup: %s is more than %s", c.Duration+c.Warmup, MaxDuration))
	}
	if c.Warmup < 0 {
		errs = append(errs, fmt.Errorf("--warmup: %s is negative", c.Warmup))
	}
	if c.Depth < 0 || c.Depth > MaxDepth {
		errs = append(errs, fmt.Errorf("--depth: %d is not from 1 to %d; 0 takes the default of the metric", c.Depth, MaxDepth))
	}
	if c.Signal < 0 || c.Signal > maxSignal {
		errs = append(errs, fmt.Errorf("--signal: %d is not from 1 to %d; 0 takes the default", c.Signal, maxSignal))
	}
	if c.Repeat < 1 || c.Repeat > maxRepeat {
		errs = append(errs, fmt.Errorf("--repeat: %d is not from 1 to %d", c.Repeat, maxRepeat))
	}
	return OneLineOf(append(errs, c.validateBusy()))
}

func (c *Options) validateBusy() error {
	for i, n := range c.Busy {
		switch {
		case n < 0 || n > MaxBusy:
			return fmt.Errorf("--busy: %d is not from 0 to %d", n, MaxBusy)
		case slices.Contains(c.Busy[:i], n):
			return fmt.Errorf("--busy: %d is there twice", n)
		}
	}
	return nil
}

// minMTU and maxMTU limit the MTU of a lab, in bytes. minMTU is the packet size that every IPv4 host accepts (RFC 791),
// and maxMTU is the largest MTU of a veth.
const minMTU, maxMTU = 576, 65535

// ValidateFilters checks the lists that select rows of a job. An empty list selects all.
func (c *Options) ValidateFilters() error {
	errs := []error{
		someOf("op", c.Ops, RowOps),
		someOf("metric", c.Metrics, JobMetrics),
	}
	switch {
	case c.Full && !c.Impair.Zero():
		errs = append(errs, errors.New("--full and --impair select different rows; give one of them"))
	case !c.Full && c.Churn != 0:
		errs = append(errs, errors.New("--churn needs --full: it applies to one of its rows"))
	}
	errs = append(errs, c.validateChurn())
	for _, mtu := range c.MTUs {
		if mtu < minMTU || mtu > maxMTU {
			errs = append(errs, fmt.Errorf("--mtu: %d is not from %d to %d", mtu, minMTU, maxMTU))
		}
	}
	return OneLineOf(errs)
}

// ValidateAdapter checks the adapter's name and port.
func (c *Options) ValidateAdapter() error {
	if c.IA == "" {
		return errors.New("--ia is needed: the adapter to use, as in --ia xdp:eth0 or --ia udp:10.0.0.1")
	}
	if c.Port == 0 {
		return errors.New("--port: 0 is not a port; choose one from 1 to 65535, the same on both hosts")
	}
	for flag, file := range map[string]string{"key": c.Key, "peers": c.Peers} {
		if strings.ContainsAny(file, " \t\n") {
			return fmt.Errorf("--%s: a file whose name %q has spaces is not supported: choose another name", flag, file)
		}
	}
	return nil
}

// Adapter returns the name of the adapter, with the options that have flags of their own.
func (c *Options) Adapter() string { return withKeys(c.IA, c.Key, c.Peers) }

// withKeys adds the files of secure mode to the name of an adapter.
func withKeys(ia, key, peers string) string {
	if key != "" {
		ia += " key=" + key
	}
	if peers != "" {
		ia += " peers=" + peers
	}
	return ia
}

// ValidateWorkload checks the options that the user's own rows are made from. Each row must pass fits.
func (c *Options) ValidateWorkload(fits func(Spec) error) error {
	return OneLineOf([]error{
		c.Validate(),
		OneOf("op", c.Ops, Ops),
		OneOf("metric", c.Metrics, RunMetrics),
		c.validateRequests(),
		c.validateChurn(),
		c.validateSizes(),
		c.validateStreams(),
		c.validateCount(),
		c.validateEach(fits),
	})
}

// validateSizes checks the sizes. The size of a write in a latency row must be a multiple of wordSize.
func (c *Options) validateSizes() error {
	for _, size := range c.Sizes {
		if size > MaxSize {
			return fmt.Errorf("--size: %s is more than %s", result.FormatSize(size), result.FormatSize(MaxSize))
		}
		if size%wordSize != 0 && slices.Contains(c.Ops, result.Write) && slices.Contains(c.Metrics, result.Latency) {
			return fmt.Errorf("--size: %d is not a multiple of %d, which the latency of a write needs", size, wordSize)
		}
	}
	return nil
}

// validateRequests checks that rr rows use sends, because only a message makes the target answer.
func (c *Options) validateRequests() error {
	if !slices.Contains(c.Metrics, result.Requests) {
		return nil
	}
	for _, op := range c.Ops {
		if op != result.Send {
			return fmt.Errorf("--metric rr is of --op send, each answered by one: %s has no answer", op)
		}
	}
	return nil
}

func (c *Options) validateChurn() error {
	if c.Churn > ChurnSize {
		return fmt.Errorf("--churn: %s is more than %s", result.FormatSize(int64(c.Churn)), result.FormatSize(ChurnSize))
	}
	return nil
}

// validateStreams checks the options of stream rows. They have no meaning for rows with one operation at a time.
func (c *Options) validateStreams() error {
	if c.Connections < 1 || c.Connections > MaxConnections {
		return fmt.Errorf("--connections: %d is not from 1 to %d", c.Connections, MaxConnections)
	}
	metrics := strings.Join(c.Metrics, ",")
	switch stream := slices.ContainsFunc(c.Metrics, Streams); {
	case c.Connections > 1 && !stream:
		return fmt.Errorf("--connections is for --metric rate or bw: %s has one", metrics)
	case c.BothWays && !stream:
		return fmt.Errorf("--bidir is for --metric rate or bw: %s goes one way", metrics)
	case c.Signal != 0 && !slices.Contains(c.Metrics, result.Rate):
		return fmt.Errorf("--signal is for --metric rate: in %s rows every operation has a completion event", metrics)
	case c.Signal != 0 && c.Count > 0:
		return errors.New("--signal and --count: counted operations complete one by one; give one of them")
	case c.Depth > 0 && !slices.ContainsFunc(c.Metrics, deep) && !slices.Contains(c.Metrics, result.SHA256):
		return fmt.Errorf("--depth is for --metric rate, rr or bw: %s has one operation at a time", metrics)
	}
	return nil
}

// validateEach returns the error of the first invalid row.
func (c *Options) validateEach(fits func(Spec) error) error {
	for _, r := range c.Rows("") {
		if err := fits(r); err != nil {
			return err
		}
	}
	return nil
}

func (c *Options) validateCount() error {
	latency := slices.ContainsFunc(c.Metrics, result.Timed)
	switch {
	case c.Count < 0:
		return fmt.Errorf("--count: %d is negative", c.Count)
	case c.Count > 0 && latency && c.Count < MinLatencySamples:
		return fmt.Errorf("--count: %d round trips are too few for a p99.9; ask for %d or more", c.Count, MinLatencySamples)
	case c.Interval < 0 && c.Interval != AutoInterval, c.Interval > 0 && c.Interval < minInterval:
		return fmt.Errorf("--interval: %s is not %s or more; 0 is none", c.Interval, minInterval)
	}
	return nil
}

func OneLineOf(errs []error) error {
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

// wantMode returns the mode in an adapter's name, as in xdp:eth0,zero-copy; empty if there is none.
func wantMode(ia string) string {
	n, err := ianame.Parse(ia)
	if err != nil || n.Kind != ianame.XDP {
		return ""
	}
	return n.Mode
}

// Rows returns one row for each combination of metric, operation and size.
func (c *Options) Rows(transport string) []Spec {
	var out []Spec
	for _, metric := range c.Metrics {
		for _, op := range c.Ops {
			for _, size := range c.sizesFor(metric) {
				r := c.row(op, metric, transport, size)
				r.Churn, r.Realtime = int64(c.Churn), c.Realtime
				out = append(out, r)
			}
		}
	}
	return c.besideLoops(out)
}

// besideLoops returns the rows, each beside every number of busy loops. The rows that differ only in this number follow
// one another, so that they are measured close in time.
func (c *Options) besideLoops(rows []Spec) (out []Spec) {
	if len(c.Busy) == 0 {
		return rows
	}
	for _, r := range rows {
		for _, n := range c.Busy {
			r.Busy = n
			out = append(out, r)
		}
	}
	return out
}

func (c *Options) sizesFor(metric string) []int64 {
	switch {
	case len(c.Sizes) > 0:
		return c.Sizes
	case metric == result.Bandwidth || metric == result.SHA256:
		return []int64{streamSize}
	}
	return []int64{defaultSize}
}

func (c *Options) row(op, metric, transport string, size int64) Spec {
	r := Spec{Row: result.Row{Op: op, Metric: metric, Transport: transport, Size: size, Depth: c.Depth},
		Duration: c.Duration, Warmup: c.Warmup, WantMode: wantMode(c.IA)}
	if Streams(metric) && c.Connections > 1 {
		r.Connections = c.Connections
	}
	r.BothWays = Streams(metric) && c.BothWays
	if metric == result.Rate {
		r.Signal = c.Signal
	}
	if c.Count > 0 && metric != result.SHA256 {
		r.Count, r.Duration = c.Count, countLimit
	}
	if metric == result.SHA256 {
		r.Bytes = int64(c.Bytes)
	}
	return r
}

// IntervalOf returns the time between the progress lines of a row; 0 means no lines. If the user chose no interval, a
// long row has one line per second.
func (c *Options) IntervalOf(r Spec) time.Duration {
	switch {
	case r.Metric == result.SHA256:
		return 0
	case c.Interval != AutoInterval:
		return c.Interval
	case c.Duration >= longRow || r.Count > 0:
		return time.Second
	}
	return 0
}
