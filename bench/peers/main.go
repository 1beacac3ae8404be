// Command peers compares datxdp with UCX, libfabric, sockperf, iperf3, TCP of Go's net without and with TLS, quic-go and gRPC. It
// runs each of them and datbench in the same two network namespaces, and prints one table.
//
// bench/peers.sh builds and runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes, the same as those of datbench.
const (
	exitValid   = 0
	exitInvalid = 1
	exitUsage   = 2
)

// Reasons why a run that measured something has failed.
var (
	errInvalid     = errors.New("not valid, for the reasons given")
	errInterrupted = errors.New("interrupted; nothing is left behind")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once; the kernel cleans up
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command line. It prints an error as one line on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitValid
	}
	fmt.Fprintf(stderr, "peers: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	if errors.Is(err, errInvalid) || errors.Is(err, errInterrupted) {
		return exitInvalid
	}
	return exitUsage
}

const longHelp = `peers measures UCX, libfabric, sockperf, iperf3, TCP of Go's net without and with TLS, quic-go and gRPC
beside datbench, all in the same pairs of throw-away network namespaces joined by veth, and prints one table: the peer's figure,
ours, and the ratio, which is above 1 where ours is better. Figures are medians of --repeat rounds.

It needs root. A tool that is not installed costs its rows: they name the Debian package.

Exit status: 0 every row has its figures, 1 some row has not, 2 nothing could be measured.`

func rootCommand(stdout, stderr io.Writer) *cobra.Command {
	cfg := defaultConfig()
	c := &cobra.Command{
		Use:           "peers",
		Short:         "Measure other libraries and tools beside datxdp",
		Long:          longHelp,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return compare(cmd.Context(), cfg, stdout, stderr)
		},
	}
	c.SetOut(stdout)
	c.SetErr(stderr)
	c.CompletionOptions.DisableDefaultCmd = true
	cfg.flags(c.Flags())
	c.AddCommand(serveCommand(stdout), runCommand(stdout), servicesCommand(stdout, stderr))
	return c
}
