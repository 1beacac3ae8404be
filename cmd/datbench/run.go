package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/job"
	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/render"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

func (a *app) clientCommand() *cobra.Command {
	cfg := defaultConfig()
	cfg.Duration = time.Second
	c := &cobra.Command{
		Use:     "run HOST",
		Short:   "Measure against a datbench server on another host",
		Long:    runHelp,
		Example: runExamples,
		Args:    oneHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := contradictions(cmd, &cfg); err != nil {
				return err
			}
			return a.runClient(cmd.Context(), &cfg, args[0])
		},
	}
	cfg.jsonFlag(c)
	cfg.metricsFlag(c)
	cfg.adapterFlags(c)
	cfg.timeFlags(c)
	cfg.workloadFlags(c)
	cfg.impairFlag(c, "at this\nend; each row is measured without it first")
	cfg.busyFlag(c, "at each end")
	cfg.pcapFlag(c)
	c.Flags().StringVar(&cfg.PeerKey, "peer-key", "", "public `key` of the server, or its name in the file of --peers; without,\nthe line of that file with the server's address")
	c.Flags().DurationVar(&cfg.wait, "wait", defaultWait, "wait up to this `time` for a server that another client has")
	return c
}

const runHelp = `run measures against "datbench server" on another host, one row for each metric, operation and size.

lat    full round trip, one operation at a time
rr     --depth requests in flight; the server answers each send with one of the same size
rate   --depth operations outstanding on each of --connections connections; one thread posts to
       them in turn; one of --signal requests completes with an event, which reports the requests
       before it too
bw     as rate, with an event for each operation
sha256 moves --bytes and compares both ends

With --busy 4, four busy loops at normal priority compute on the host of each end while a row runs.
A line below the table shows how long the threads of datbench waited for a core (run delay), and how
often they lost one to another thread; --json has these figures for every row.

A row is invalid if one of its two sides lacked processor time, if frames were lost that no counter
explains, or if it ran in another mode than the adapter's name requests. The report says why.

A server measures with one client at a time. While another client has the server, run waits for up
to --wait and says which client has it and since when.

Exit status: 0 all results are valid, 1 a result is invalid, 2 nothing could be measured.`

const runExamples = `  datbench run 10.0.0.1 --ia xdp:eth0                        # round trips of 64 B sends
  datbench run 10.0.0.1 --ia xdp:eth0 --op write --metric bw --duration 10s   # a line a second
  datbench run 10.0.0.1 --ia xdp:eth0 --metric rate --connections 8 --cpu 2
  datbench run 10.0.0.1 --ia xdp:eth0 --metric bw --bidir --json both.json
  datbench run 10.0.0.1 --ia xdp:eth0 --metric rr --depth 8 --churn 64M
  datbench run 10.0.0.1 --ia xdp:eth0 --op send,write,read --metric lat,bw --size 64-1M
  datbench run 10.0.0.1 --ia xdp:eth0 --repeat 10 --json new.json   # for datbench compare`

// contradictions returns an error for flags that exclude each other.
func contradictions(cmd *cobra.Command, cfg *config) error {
	given := cmd.Flags().Changed
	switch {
	case given("count") && given("duration"):
		return errors.New("--count and --duration: each says when a row ends; give one of them")
	case given("bytes") && !slices.Contains(cfg.Metrics, result.SHA256):
		return errors.New("--bytes is for --metric sha256; --size is what other rows are made of")
	}
	return nil
}

func (c *config) validateWait() error {
	if c.wait < 0 {
		return fmt.Errorf("--wait: %s is negative; 0 does not wait", c.wait)
	}
	return nil
}

func oneHost(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return errors.New("run needs one host: datbench run HOST --ia xdp:INTERFACE, with \"datbench server\" on HOST")
}

func (a *app) runClient(ctx context.Context, cfg *config, name string) error {
	if err := plan.OneLineOf([]error{cfg.ValidateAdapter(), cfg.ValidateWorkload(workload.CheckBounds), cfg.validateWait()}); err != nil {
		return err
	}
	if err := measure.MayUse(cfg.CPUs); err != nil {
		return err
	}
	peer, err := lookup(ctx, name)
	if err != nil {
		return err
	}
	out, err := openOutput(cfg.json, a.stdout)
	if err != nil {
		return err
	}
	defer out.close()
	h, err := a.newHost(ctx, cfg.metrics)
	if err != nil {
		return err
	}
	if h.Capture, err = workload.NewCapture(cfg.pcap); err != nil {
		return err
	}
	h.Wait = cfg.wait
	report, err := job.Against(ctx, h, &cfg.Options, peer, func(steps int) job.Observer {
		t := render.NewProgressPrinter(a.stdout, a.stderr, steps, cfg.json == "-")
		h.Tell, h.Waiting = t.Tell, t.Wait
		return t
	})
	if report != nil {
		report.Env.Pcap = cfg.pcap
	}
	return out.finish(report, agent.Interrupted(ctx, errors.Join(err, h.Capture.Close())))
}

// lookup returns the first address of a host.
func lookup(ctx context.Context, name string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(name)
	if err != nil {
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		if err != nil {
			return netip.Addr{}, fmt.Errorf("host %q: %w", name, err)
		}
		addr = addrs[0]
	}
	if addr = addr.Unmap(); addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return netip.Addr{}, fmt.Errorf("%v is the address of a group: name one host", addr)
	}
	return addr, nil
}
