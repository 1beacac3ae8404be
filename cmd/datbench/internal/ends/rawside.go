package ends

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/rawbench"
	"github.com/datxdp/datxdp/internal/result"
)

// rawConfig converts a station to a configuration of package rawbench.
func rawConfig(s plan.Station) (rawbench.Config, error) {
	mac, err := net.ParseMAC(s.PeerMAC)
	if err != nil {
		return rawbench.Config{}, fmt.Errorf("raw: %w", err)
	}
	return rawbench.Config{
		Interface: s.Interface, Engine: s.Engine, MTU: s.MTU,
		Port: s.Port, Local: s.Local, Peer: s.Peer, PeerMAC: mac,
	}, nil
}

// rawTarget echoes and counts raw frames.
type rawTarget struct {
	server *rawbench.Server
	stop   context.CancelFunc
	wg     sync.WaitGroup
	err    error
}

func newRawTarget(s plan.Station) (Target, error) {
	cfg, err := rawConfig(s)
	if err != nil {
		return nil, err
	}
	server, err := rawbench.NewServer(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &rawTarget{server: server, stop: cancel}
	t.wg.Go(func() { t.err = server.Serve(ctx) })
	return t, nil
}

func (t *rawTarget) Close() error {
	t.stop()
	t.wg.Wait()
	return errors.Join(t.err, t.server.Close())
}

// rawInitiator sends raw frames.
type rawInitiator struct{ client *rawbench.Client }

func newRawInitiator(s plan.Station) (Initiator, error) {
	cfg, err := rawConfig(s)
	if err != nil {
		return nil, err
	}
	client, err := rawbench.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	return &rawInitiator{client}, nil
}

func (i *rawInitiator) Close() error { return i.client.Close() }

func (i *rawInitiator) Run(ctx context.Context, row plan.Spec) (result.Result, error) {
	r := measure.NewResult(row)
	r.Mode = i.client.Mode()
	run := i.stream
	if row.Metric == result.Latency {
		run = i.latency
	}
	threads := measure.CountThreads()
	got, err := run(ctx, row, &r)
	if err != nil {
		return r, err
	}
	r.Drops, r.Client = got.Lost, threads.Since()
	measure.Judge(&r, measure.Evidence{Spec: row, Elapsed: got.Elapsed, CoreShare: got.CoreShare, Lost: got.Lost, Counted: got.Counted})
	return r, nil
}

func (i *rawInitiator) latency(ctx context.Context, row plan.Spec, r *result.Result) (rawbench.Result, error) {
	lat := measure.NewLatencies()
	got, err := i.client.Latency(ctx, int(row.Size), row.Warmup, row.Duration, lat.Record)
	lat.Fill(r, got.Elapsed)
	return got, err
}

func (i *rawInitiator) stream(ctx context.Context, row plan.Spec, r *result.Result) (rawbench.Result, error) {
	got, err := i.client.Stream(ctx, int(row.Size), row.Warmup, row.Duration)
	r.Count(int64(got.Received), got.Elapsed)
	return got, err
}
