package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/ends"
	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

func (a *app) serverCommand() *cobra.Command {
	cfg, most := defaultConfig(), ends.DefaultAllowance
	c := &cobra.Command{
		Use:   "server",
		Short: "Serve datbench run, one client after another",
		Example: `  datbench server --ia xdp:eth0
  datbench server --ia auto:eth0 --cpu 3 --metrics 127.0.0.1:9404`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runServer(cmd.Context(), &cfg, most)
		},
	}
	cfg.metricsFlag(c)
	cfg.adapterFlags(c)
	cfg.impairFlag(c, "at this end")
	c.Flags().Var(&most.Buffers, "memory", "largest buffers of a client in bytes; the kernel commits them\nas they are used")
	c.Flags().Var(&most.Heap, "churn", "largest heap in bytes that a client may have churned here")
	c.Flags().IntVar(&most.Busy, "busy", most.Busy, "most busy `loops` that a client may start here beside a row")
	complete(c, map[string][]string{"churn": plan.ChurnSizes})
	return c
}

func (a *app) runServer(ctx context.Context, cfg *config, most ends.Allowance) error {
	if err := cfg.ValidateAdapter(); err != nil {
		return err
	}
	if err := measure.MayUse(cfg.CPUs); err != nil {
		return err
	}
	h, err := a.newHost(ctx, cfg.metrics)
	if err != nil {
		return err
	}
	h.StartLoops = agent.StartLoops
	h.Logger = slog.New(newRefusals(a.stderr))
	s := plan.Station{Kind: plan.KindDAT, IA: cfg.Adapter(), Port: cfg.Port, Qualifier: cfg.Qualifier, Impair: cfg.Impair.Text(), CPUs: cfg.CPUs, Realtime: cfg.Realtime}
	t, err := ends.OpenDAT(ctx, h, s, most, func(format string, args ...any) { fmt.Fprintf(a.stdout, format+"\n", args...) })
	if err != nil {
		return err
	}
	attr := t.Adapter.Attr
	fmt.Fprintf(a.stdout, "serving on %v, UDP port %d: %s, mode %s%s\n", attr.Address, attr.Port, cfg.Adapter(), attr.Mode,
		result.Row{Secure: attr.Secure, Impair: cfg.Impair.Text()}.Conditions())
	ended := t.Adapter.IA.Context()
	select {
	case <-t.Served.Done():
		return t.Close()
	case <-ended.Done(): // a supervisor restarts the program
		return errors.Join(context.Cause(ended), t.Close())
	}
}

// newHost returns the host of a process that opens its own ends.
func (a *app) newHost(ctx context.Context, address string) (*workload.Host, error) {
	if address == "" {
		return &workload.Host{}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	fmt.Fprintf(a.stderr, "datbench: metrics on http://%s/metrics\n", l.Addr())
	h := &workload.Host{}
	h.ServeMetrics(ctx, l)
	return h, nil
}
