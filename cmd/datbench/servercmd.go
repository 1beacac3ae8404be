package main

import (
	"context"
	"fmt"
	"net"

	"github.com/datxdp/datxdp/internal/result"
	"github.com/spf13/cobra"
)

func (a *app) serverCommand() *cobra.Command {
	cfg, most := defaultConfig(), allowance{maxAskBytes, serverHeap}
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
	c.Flags().Var(&most.buffers, "memory", "most bytes of buffers for a client, committed\nas they are used")
	c.Flags().Var(&most.heap, "churn", "most bytes of heap that a client may have churned here")
	complete(c, map[string][]string{"churn": churnSizes})
	return c
}

func (a *app) runServer(ctx context.Context, cfg *config, most allowance) error {
	if err := cfg.validateAdapter(); err != nil {
		return err
	}
	if err := mayUse(cfg.cpus); err != nil {
		return err
	}
	h, err := a.newHost(ctx, cfg.metrics)
	if err != nil {
		return err
	}
	s := station{Kind: kindDAT, IA: cfg.ia, Port: cfg.port, Impair: cfg.impair.text(), CPUs: cfg.cpus, Realtime: cfg.realtime}
	t, err := openTarget(ctx, h, s, most, func(format string, args ...any) { fmt.Fprintf(a.stdout, format+"\n", args...) })
	if err != nil {
		return err
	}
	attr := t.a.attr
	fmt.Fprintf(a.stdout, "serving on %v, UDP port %d: %s, mode %s%s\n", attr.Address, attr.Port, cfg.ia, attr.Mode, result.Row{Impair: cfg.impair.text()}.Conditions())
	<-t.served.Done()
	return t.close()
}

// newHost is the host of a process that opens its own ends.
func (a *app) newHost(ctx context.Context, address string) (*host, error) {
	if address == "" {
		return &host{}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	fmt.Fprintf(a.stderr, "datbench: metrics on http://%s/metrics\n", l.Addr())
	h := &host{}
	h.serveMetrics(ctx, l)
	return h, nil
}
