package main

import (
	"io"
	"os"
	"os/signal"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
)

// busyCommand is the hidden subcommand with the busy loops of --busy.
func busyCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:    agent.LoopsCommand,
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			signal.Ignore(os.Interrupt) // the process that started the loops ends them
			n, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			return agent.Loop(n, stdin, stdout)
		},
	}
}
