package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
)

// agentCommand is the hidden subcommand that the main job starts in each of its namespaces.
func agentCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	var metricsFD, pcapFD uint
	c := &cobra.Command{
		Use:    "agent",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A terminal sends an interrupt to every process. Only the main job handles it.
			signal.Ignore(os.Interrupt)
			h := &workload.Host{}
			if pcapFD != 0 {
				h.Capture = &workload.Capture{File: os.NewFile(uintptr(pcapFD), "capture")}
			}
			if metricsFD != 0 {
				if err := h.ServeMetricsOn(cmd.Context(), uintptr(metricsFD)); err != nil {
					return err
				}
			}
			a := agent.New(h)
			a.GiveUp = func(why string) {
				fmt.Fprintf(os.Stderr, "datbench agent: %s\n", why)
				os.Exit(exitUsage)
			}
			return a.Serve(cmd.Context(), stdin, stdout)
		},
	}
	c.Flags().UintVar(&metricsFD, "metrics-fd", 0, "listening socket to serve metrics on")
	c.Flags().UintVar(&pcapFD, "pcap-fd", 0, "file to write a capture to")
	return c
}
