package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/job"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/doctor"
	"github.com/datxdp/datxdp/internal/progress"
)

// errNotFit ends an examination that found an error: exit status 1.
var errNotFit = errors.New("what was asked will not work, or is not known to; the errors above say why, and what to do")

const doctorHelp = `doctor says whether DAT will work here, and what to do where it will not. It changes nothing, but for
what --try does. Where other AF_XDP sockets are open and the kernel does not list which queues they have,
it takes each queue for a moment to see whether it is free.

With --ia it checks what that adapter needs: xdp: everything for AF_XDP, udp: what a kernel UDP socket
needs, auto: both; there only what stops UDP too is an error. Without --ia it looks at every interface
but loopback, and it is enough that one can run AF_XDP. With --peer it looks for the route to that host
and sends a few packets to it: does its Ethernet address resolve, does an adapter answer, which packets
fit. Run it on both hosts: each sees its own end only.

With --metrics it looks at a program that runs, by the metrics that it serves (datbench --metrics, or
package exporter): which queues of its adapters have transmitted and received, and whose transmit ring
stands still.

Findings are ok, info (good to know), warning (it works, but slower or not as expected) or error. The
last line says what will happen.

--json prints one object: ia, port, peer, severity (of the worst finding), verdict (the last line), and
findings, each with check (the name of the check), group (what was looked at), severity, found, and
where there is something to do: means, fix, command.

Exit status: 0 it will work, whatever there is of warnings; 1 an error stops what was asked, or there was
no time to look at all of it; 2 usage.`

// doctorFlags are the command line of the doctor.
type doctorFlags struct {
	ia, peer, metrics string
	port              uint16
	json, try         bool
}

func (a *app) doctorCommand() *cobra.Command {
	f := doctorFlags{port: defaultPort}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say whether DAT will work here, and what to fix; it changes nothing",
		Long:  doctorHelp,
		Example: "  datbench doctor\n" +
			"  datbench doctor --ia xdp:eth0 --peer 10.0.0.2\n" +
			"  datbench doctor --metrics 127.0.0.1:9404",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context(), f) },
	}
	c.Flags().StringVar(&f.ia, "ia", "", "`adapter` to check: xdp:eth0, xdp:eth0,zero-copy, udp:10.0.0.1 or auto:eth0;\nevery interface without")
	c.Flags().StringVar(&f.peer, "peer", "", "also check the way to this `host`")
	c.Flags().Uint16Var(&f.port, "port", f.port, "UDP port of the traffic, the same on both hosts")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	c.Flags().BoolVar(&f.try, "try", false, "with --ia: open the adapter for a moment, to see what is granted;\nsome drivers take their link down for a second with it")
	c.Flags().StringVar(&f.metrics, "metrics", "", "look at the queues of the program that serves its metrics on this `address`")
	for _, other := range []string{"ia", "peer", "port", "try"} {
		c.MarkFlagsMutuallyExclusive("metrics", other)
	}
	return c
}

// report is the examination that the flags ask for.
func (f *doctorFlags) report(ctx context.Context, t doctor.Target) (*doctor.Report, error) {
	if f.metrics != "" {
		r, err := doctor.Running(ctx, f.metrics)
		if err != nil {
			return nil, fmt.Errorf("--metrics: %w", err)
		}
		return r, nil
	}
	r, err := doctor.Examine(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("--ia: %w", err)
	}
	return r, nil
}

func (a *app) runDoctor(ctx context.Context, f doctorFlags) error {
	t := doctor.Target{IA: f.ia, Port: f.port, Try: f.try}
	switch {
	case f.port == 0:
		return (&plan.Options{IA: "any"}).ValidateAdapter()
	case f.try && f.ia == "":
		return errors.New("--try needs --ia: the adapter to open")
	}
	if f.peer != "" {
		peer, err := lookup(ctx, f.peer)
		if err != nil {
			return fmt.Errorf("--peer: %w", err)
		}
		t.Peer = peer
	}
	report, err := f.report(ctx, t)
	if err != nil {
		return err
	}
	if err := a.show(report, f.json); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return agent.ErrInterrupted
	case report.Severity == doctor.Error:
		return errNotFit
	}
	return nil
}

func (a *app) show(r *doctor.Report, asJSON bool) error {
	if !asJSON {
		return r.Print(a.stdout, progress.IsTerminal(a.stdout))
	}
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// explain prints what explains a failure of an adapter, below the line that says it.
func (a *app) explain(ctx context.Context, cmd *cobra.Command, err error) {
	if !explicable(err) {
		return
	}
	for _, f := range doctor.Explain(ctx, targetOf(ctx, cmd)) {
		_ = f.Print(a.stderr, progress.IsTerminal(a.stderr)) // nobody could be told
	}
}

// explicable is whether the doctor may know why: an adapter could not be opened, or a peer not reached.
func explicable(err error) bool {
	var (
		refused dat.Return
		absent  *workload.AbsentError
		cannot  *job.UnavailableError
	)
	return errors.As(err, &refused) || errors.As(err, &absent) || errors.As(err, &cannot) || errors.Is(err, workload.ErrSilent)
}

// lookupLimit bounds the second look for the address of a name.
const lookupLimit = 500 * time.Millisecond

// targetOf is what a command was about: its adapter and its host, or the host alone.
func targetOf(ctx context.Context, cmd *cobra.Command) (t doctor.Target) {
	if ia := cmd.Flags().Lookup("ia"); ia != nil {
		t.IA = ia.Value.String()
	}
	t.HostOnly = t.IA == ""
	if port, err := cmd.Flags().GetUint16("port"); err == nil {
		t.Port = port
	}
	if args := cmd.Flags().Args(); len(args) == 1 {
		ctx, cancel := context.WithTimeout(ctx, lookupLimit)
		defer cancel()
		t.Peer, _ = lookup(ctx, args[0]) // none, if it cannot be found
	}
	return t
}
