package gopeer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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
func (a Ask) validate() error {
	var errs []error
	if a.Metric != result.Latency && a.Metric != result.Rate && a.Metric != result.Bandwidth {
		errs = append(errs, fmt.Errorf("metric %q is not lat, rate or bw", a.Metric))
	}
	if a.Size < minSize || a.Size > maxSize {
		errs = append(errs, fmt.Errorf("size %d is not from %d to %d", a.Size, minSize, maxSize))
	}
	if a.Unary && !a.echoed() {
		errs = append(errs, errors.New("a unary call has one message at a time: measure lat"))
	}
	if a.Duration <= 0 || a.Warmup < 0 {
		errs = append(errs, fmt.Errorf("measured time %s after %s is not a time", a.Duration, a.Warmup))
	}
	return errors.Join(errs...)
}

// library is one way to transfer messages. Both functions return when ctx ends.
type library struct {
	name  string
	serve func(ctx context.Context, addr string, ready func()) error
	run   func(ctx context.Context, addr string, a Ask) (tally, error)
}

// Names of the libraries.
const (
	Net  = "net"
	QUIC = "quic-go"
	GRPC = "grpc"
)

var libraries = []library{
	{Net, serveNet, runNet},
	{QUIC, serveQUIC, runQUIC},
	{GRPC, serveGRPC, runGRPC},
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
func Serve(ctx context.Context, name, addr string, ready func()) error {
	l, err := find(name)
	if err != nil {
		return err
	}
	if err := l.serve(ctx, addr, ready); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Run measures against a server.
func Run(ctx context.Context, name, addr string, a Ask) (result.Result, error) {
	r := result.Result{Row: result.Row{Op: name, Metric: a.Metric, Size: int64(a.Size)}, Mode: "kernel"}
	l, err := find(name)
	if err != nil {
		return r, err
	}
	if err := a.validate(); err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	t, err := l.run(ctx, addr, a)
	if err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	if t.n == 0 {
		return r, fmt.Errorf("%s: no message came through in %s", name, a.Duration)
	}
	r.Count(t.n, t.elapsed)
	r.Valid = true
	if t.times != nil {
		r.P50, r.P99 = micros(t, 50), micros(t, 99)
	}
	return r, nil
}

func micros(t tally, percent float64) *float64 {
	us := float64(t.times.ValueAtQuantile(percent)) / float64(time.Microsecond)
	return &us
}
