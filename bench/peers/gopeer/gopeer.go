package gopeer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/datxdp/datxdp/internal/result"
)

// Ask describes one run.
type Ask struct {
	// Metric is result.Latency, Rate or Bandwidth. Size is the size of a message in bytes.
	Metric string
	Size   int
	// Buffered gathers messages before they are written. Unary uses a unary gRPC call per message.
	Buffered, Unary bool
	// Duration is the measured time. Warmup precedes it and is not measured.
	Duration, Warmup time.Duration
}

// minSize and maxSize limit a message in bytes: it must have room for a tally, and fit into every receiver's buffer.
const minSize, maxSize = 16, 64 << 20

func (a Ask) echoed() bool { return a.Metric == result.Latency }

// validate reports every fault, in the order of the fields.
func (a Ask) validate(l library) error {
	var errs []error
	if a.Metric != result.Latency && a.Metric != result.Rate && a.Metric != result.Bandwidth {
		errs = append(errs, fmt.Errorf("metric %q is not lat, rate or bw", a.Metric))
	}
	if a.Size < minSize || a.Size > maxSize {
		errs = append(errs, fmt.Errorf("size %d is not from %d to %d", a.Size, minSize, maxSize))
	}
	if (a.Unary || l.requests) && !a.echoed() {
		errs = append(errs, errors.New("a request has one message at a time: measure lat"))
	}
	if a.Duration <= 0 || a.Warmup < 0 {
		errs = append(errs, fmt.Errorf("measured time %s after %s is not a time", a.Duration, a.Warmup))
	}
	return errors.Join(errs...)
}

// library is one way to transfer messages. Both functions return when ctx ends.
type library struct {
	name  string
	serve func(ctx context.Context, e End, ready func()) error
	run   func(ctx context.Context, e End, a Ask) (tally, error)
	// requests means that the library has only round trips.
	requests bool
}

// Names of the libraries.
const (
	Net   = "net"
	TLS   = "tls"
	QUIC  = "quic-go"
	GRPC  = "grpc"
	HTTP  = "http"
	Redis = "redis"
	Raft  = "raft"
)

var libraries = []library{
	{Net, serveNet, runNet, false},
	{TLS, serveTLS, runTLS, false},
	{QUIC, serveQUIC, runQUIC, false},
	{GRPC, serveGRPC, runGRPC, false},
	{HTTP, serveHTTP, runHTTP, true},
	{Redis, serveRedis, runRedis, true},
	{Raft, serveRaft, runRaft, true},
}

func find(name string) (library, error) {
	var names []string
	for _, l := range libraries {
		if l.name == name {
			return l, nil
		}
		names = append(names, l.name)
	}
	return library{}, fmt.Errorf("no library %q: choose one of %s", name, strings.Join(names, ", "))
}

// Serve serves clients at an address until ctx ends. It calls ready when it accepts clients.
func Serve(ctx context.Context, name string, e End, ready func()) error {
	l, err := find(name)
	if err != nil {
		return err
	}
	if err := l.serve(ctx, e, ready); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Figures are the result of a run.
type Figures struct {
	result.Result
	// Operations is the number of round trips, with those before the measured time. CPU is the CPU time of the client in
	// µs for all of them.
	Operations int64   `json:"operations"`
	CPU        float64 `json:"cpu_us"`
}

// Run measures against a server. With the adapter Memory, it runs the server too.
func Run(ctx context.Context, name string, e End, a Ask) (f Figures, err error) {
	f.Result = result.Result{Row: result.Row{Op: name, Metric: a.Metric, Size: int64(a.Size)}, Mode: "kernel"}
	l, err := find(name)
	if err != nil {
		return f, err
	}
	if err := a.validate(l); err != nil {
		return f, fmt.Errorf("%s: %w", name, err)
	}
	t, err := l.measure(ctx, e, a)
	if err != nil {
		return f, fmt.Errorf("%s: %w", name, err)
	}
	if t.n == 0 {
		return f, fmt.Errorf("%s: no message came through in %s", name, a.Duration)
	}
	f.Count(t.n, t.elapsed)
	f.Valid = true
	f.Operations, f.CPU = t.all, float64(t.cpu)/float64(time.Microsecond)
	if t.times != nil {
		f.P50, f.P99 = micros(t, 50), micros(t, 99)
	}
	return f, nil
}

// measure runs the client and, with the adapter Memory, the server too. Raft has its followers in the client's process
// then.
func (l library) measure(ctx context.Context, e End, a Ask) (tally, error) {
	if e.Adapter != Memory || l.name == Raft {
		return l.run(ctx, e, a)
	}
	e.memory = bufconn.Listen(bufferSize)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = l.serve(ctx, e, func() {}) }() // the client reports the error
	return l.run(ctx, e, a)
}

func micros(t tally, percent float64) *float64 {
	us := float64(t.times.ValueAtQuantile(percent)) / float64(time.Microsecond)
	return &us
}
