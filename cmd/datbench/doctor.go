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
	"github.com/datxdp/datxdp/internal/progressbar"
)

// errNotFit reports that the doctor found an error: exit status 1.
var errNotFit = errors.New("this will not work, or was not checked completely; the errors above say why, and what to do")

const doctorHelp = `doctor checks whether DAT will work on this host, and says what to do if it will not. It changes nothing
unless --try is given. If other AF_XDP sockets are open and the kernel does not list their queues, it
binds each queue for a moment to see whether it is free.

With --ia it checks the needs of that adapter: all of AF_XDP for xdp:, a kernel UDP socket for udp:, and
both for auto:, where a fault is an error only if it stops UDP too. Without --ia it checks every
interface but loopback; one that can run AF_XDP is enough. With --peer it looks up the route to that
host and sends it a few packets, to check whether its Ethernet address resolves, whether an adapter
answers, and which packet sizes pass. Run it on both hosts: each sees only its own end.

With --metrics it checks a running program by its metrics (datbench --metrics, or package exporter):
which queues of its adapters have transmitted and received, and which transmit rings are stalled.

Findings are ok, info (good to know), warning (it works, but slower or not as expected) or error. The
last line says what will happen.

--json prints one object: ia, port, peer, severity (of the worst finding), verdict (the last line), and
findings. Each finding has check (its name), group (the object that was checked), severity, found, and if
there is something to do: means, fix, command.

Exit status: 0 it will work, perhaps with warnings; 1 it will not work, or there was no time to check
everything; 2 usage.`

// doctorFlags holds the flags of the doctor.
type doctorFlags struct {
	ia, peer, metrics string
	port              uint16
	json, try, toPeer bool
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.toPeer = cmd.Flags().Changed("peer")
			return a.runDoctor(cmd.Context(), f)
		},
	}
	c.Flags().StringVar(&f.ia, "ia", "", "`adapter` to check: xdp:eth0, xdp:eth0,zero-copy, udp:10.0.0.1 or auto:eth0;\nevery interface without")
	c.Flags().StringVar(&f.peer, "peer", "", "also check the route to this `host`")
	c.Flags().Uint16Var(&f.port, "port", f.port, "UDP port of the traffic, the same on both hosts")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	c.Flags().BoolVar(&f.try, "try", false, "with --ia: open the adapter for a moment, to see which mode is granted;\nsome drivers then take their link down for a second")
	c.Flags().StringVar(&f.metrics, "metrics", "", "check the queues of the program that serves metrics on this `address`")
	for _, other := range []string{"ia", "peer", "port", "try"} {
		c.MarkFlagsMutuallyExclusive("metrics", other)
	}
	return c
}

// report runs the examination that the flags request.
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
	if f.toPeer {
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
		return r.Print(a.stdout, progressbar.IsTerminal(a.stdout))
	}
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// explain prints possible causes of a failed adapter below the error message.
func (a *app) explain(ctx context.Context, cmd *cobra.Command, err error) {
	if !diagnosable(err) {
		return
	}
	for _, f := range doctor.Explain(ctx, targetOf(ctx, cmd)) {
		_ = f.Print(a.stderr, progressbar.IsTerminal(a.stderr)) // there is no other place to report it
	}
}

// diagnosable reports whether the doctor can know the cause: an adapter could not be opened, or a peer was not reached.
func diagnosable(err error) bool {
	var (
		refused dat.Return
		absent  *workload.AbsentError
		cannot  *job.UnavailableError
	)
	return errors.As(err, &refused) || errors.As(err, &absent) || errors.As(err, &cannot) || errors.Is(err, workload.ErrSlow)
}

// lookupLimit bounds the second name lookup of a peer, for the explanation.
const lookupLimit = 500 * time.Millisecond

// targetOf returns the adapter and the host that a command used, or only the host.
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
		t.Peer, _ = lookup(ctx, args[0]) // left empty if the lookup fails
	}
	return t
}
