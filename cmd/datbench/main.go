// Command datbench measures DAT over AF_XDP: round-trip time, message rate and bandwidth of sends, RDMA writes and RDMA
// reads. For comparison it also measures raw AF_XDP frames and kernel TCP.
//
// Without arguments it needs neither a peer nor a set-up. As root it creates two network namespaces, which disappear
// when it ends. Without root it uses two loopback addresses.
//
// This package has the commands, their flags and the output. The packages below internal do the work;
// docs/ARCHITECTURE.md, "The packages of datbench", lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Exit codes, which scripts depend on.
const (
	exitValid   = 0
	exitInvalid = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the process at once
		time.AfterFunc(exitLimit, func() {
			fmt.Fprintf(os.Stderr, "datbench: interrupted, and not done with cleaning up after %s: the kernel does the rest\n", exitLimit)
			os.Exit(exitInvalid)
		})
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// endAtOnce lets a signal end the process. A command that only reads files calls it, because it has nothing to clean up.
func endAtOnce(*cobra.Command, []string) { signal.Reset(os.Interrupt, syscall.SIGTERM) }

// app holds the standard streams of the commands.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run executes the command line and returns the exit code. It prints an error as one line on stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin, stdout, stderr}
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		fmt.Fprintf(stderr, "datbench: %s\n", result.OneLine(err.Error()))
		a.explain(ctx, cmd, err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitValid
	case errors.Is(err, result.ErrInvalid), errors.Is(err, agent.ErrInterrupted), errors.Is(err, errNotFit), errors.Is(err, errWorse), errors.Is(err, errBroken):
		return exitInvalid
	}
	return exitUsage
}

func (a *app) rootCommand() *cobra.Command {
	cfg := defaultConfig()
	c := &cobra.Command{
		Use:           "datbench",
		Short:         "Measure DAT over AF_XDP beside the raw link and kernel TCP",
		Long:          longHelp,
		Example:       examples,
		Args:          noArguments,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return (&mainJob{app: a, cfg: &cfg, labs: plan.MainJob}).run(cmd.Context())
		},
	}
	c.Version = fmt.Sprintf("%s, %s, %s/%s", result.BuildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	c.SetVersionTemplate("datbench {{.Version}}\n")
	c.SetOut(a.stdout)
	c.SetErr(a.stderr)
	c.SuggestionsMinimumDistance = 2 // largest edit distance of a suggested command
	cfg.jsonFlag(c)
	cfg.metricsFlag(c)
	cfg.jobFlags(c)
	cfg.impairFlag(c, "at both ends")
	cfg.busyFlag(c, "on this host")
	cfg.pcapFlag(c)
	c.AddCommand(a.serverCommand(), a.clientCommand(), a.rawCommand(), a.linksCommand(), a.selftestCommand(),
		a.doctorCommand(), a.reportCommand(), a.compareCommand(), a.checkCommand(), a.keygenCommand(), agentCommand(a.stdin, a.stdout), busyCommand(a.stdin, a.stdout))
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	return c
}

// noArguments rejects arguments. An argument of the program itself is an unknown command.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasParent():
		return fmt.Errorf("%s takes no argument %q; see %[1]s --help", cmd.CommandPath(), args[0])
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("no command %q%s; see datbench --help", args[0], hint)
}

const longHelp = `datbench measures sends, RDMA writes and RDMA reads beside raw AF_XDP frames and kernel TCP.

Without arguments, as root, it creates two temporary network namespaces joined by a veth pair and
runs itself in both. It prints each row when it is measured, then a table, in about 21 seconds.
Some rows run over kernel UDP too, with XDP detached ("send udp"); --transport xdp leaves them out.
Without root or XDP it measures over kernel UDP between 127.0.0.1 and 127.0.0.2, and says so.

Row tcp_shared is kernel TCP while an adapter is open at both ends. It shows what an attached XDP
program costs the other traffic of an interface.

Column "× raw" is a row's figure divided by that of raw frames, "(p99)" its p99 divided by theirs,
and "× tcp" its figure divided by that of kernel TCP. TCP results differ between connections: a line
below the table shows the range, and the resulting range of the ratios.

With --full it measures more, in about 40 seconds: the bandwidth of each operation at MTU 1500, 3498
(the most that XDP carries in one page), 9000 and 65000; 64 B sends spread over 64 connections;
requests of 64 B answered by 64 B, 32 in flight on one connection (rr); 1 MiB writes over kernel UDP
that lose 0.1 % and 1 % of their packets; round trips of 64 B sends
while a goroutine at both ends continuously replaces 1 GiB of small objects, so that the garbage
collector always runs (2.5 GiB of memory in all).

With --secure it measures the DAT rows in secure mode too, with keys made for this run ("send+aes"):
what authentication and encryption cost (docs/SECURITY.md).

With --busy 0,4 it measures each row alone and beside four busy loops on this host. A line below
each table shows how long the threads of both ends waited for a core (run delay), and how often they
lost one to another thread; with --full too. Rows beside loops need no core of their own to be
valid. Give them more time, as in --duration 3s: some requests wait for time slices of 3 ms. Sends,
writes and reads poll and never sleep; stream (--full) waits as programs do, in mode adaptive.

With --impair it measures 1 MiB writes and 1 KiB round trips at MTU 1500 twice: without and with the
impairment. Kernel TCP is measured under the same loss and without offloads; under loss it runs five
times as long. The table shows which part of the performance is kept. Raw frames are never impaired.
Dropped packets count as drops.

Exit status: 0 all results are valid, 1 a result is invalid, 2 nothing could be measured.`

const examples = `  datbench                                 # everything, in about 21 seconds
  datbench --op write,tcp --metric bw --mtu 9000 --duration 5s
  datbench --repeat 10 --json new.json     # for datbench compare
  datbench --full --repeat 5 --json new.json; datbench check new.json   # make perf
  datbench --full --busy 0,4 --op stream,tcp --metric lat --duration 3s   # what other work costs
  datbench --impair loss=1%                # what loss costs
  datbench doctor                          # what this host supports, and what to fix`

func (a *app) rawCommand() *cobra.Command {
	cfg := defaultConfig()
	cfg.Transport = plan.TransportXDP
	c := &cobra.Command{
		Use:   "raw",
		Short: "Measure raw AF_XDP frames in a throw-away lab, with our engine or asavie/xdp",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := plan.OneOf("engine", cfg.Engines, plan.Engines); err != nil {
				return err
			}
			return (&mainJob{app: a, cfg: &cfg, labs: plan.RawJob}).run(cmd.Context())
		},
	}
	cfg.jsonFlag(c)
	cfg.timeFlags(c)
	c.Flags().StringSliceVar(&cfg.Engines, "engine", cfg.Engines, "engines: native, asavie")
	c.Flags().StringSliceVar(&cfg.Metrics, "metric", nil, "only these metrics: lat, rate, bw")
	c.Flags().IntSliceVar(&cfg.MTUs, "mtu", []int{1500, 9000, 65000}, "MTUs of the bw rows; asavie supports 1500 only")
	complete(c, map[string][]string{"engine": plan.Engines, "metric": plan.RawMetrics, "mtu": {"1500", "9000", "65000"}})
	return c
}

func (a *app) selftestCommand() *cobra.Command {
	cfg := defaultConfig()
	c := &cobra.Command{
		Use:   "selftest",
		Short: "Move bytes by send, write and read in a throw-away lab and compare their SHA-256",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return (&mainJob{app: a, cfg: &cfg, labs: plan.SelftestJob}).run(cmd.Context())
		},
	}
	cfg.jsonFlag(c)
	cfg.metricsFlag(c)
	cfg.impairFlag(c, "at both ends")
	cfg.pcapFlag(c)
	c.Flags().Var(&cfg.Bytes, "bytes", "bytes that each operation moves")
	c.Flags().StringVar(&cfg.Transport, "transport", cfg.Transport, "xdp, udp, or auto")
	c.Flags().IntSliceVar(&cfg.MTUs, "mtu", []int{1500}, "MTUs of the lab")
	c.Flags().Uint16Var(&cfg.Port, "port", cfg.Port, "UDP port of the traffic")
	complete(c, map[string][]string{"transport": plan.Transports, "mtu": {"1500", "9000", "65000"}})
	return c
}
