package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/bench/peers/gopeer"
	"github.com/datxdp/datxdp/internal/result"
)

const libraryHelp = `LIBRARY is net, tls, quic-go, grpc, http, redis or raft; ADDRESS is the server's, as 10.0.0.1:7801. The leader of
raft is the client; its ADDRESS is a list, 10.0.0.1:7801,10.0.0.2:7801,10.0.0.3:7801, of itself and of the servers.`

// serveCommand runs the server of a library that this program contains.
func serveCommand(stdout io.Writer) *cobra.Command {
	var e gopeer.End
	c := &cobra.Command{
		Use:   "serve LIBRARY ADDRESS",
		Short: "Serve peers run over a library of Go",
		Long:  "serve serves peers run. At its end it prints the CPU time since it was ready. " + libraryHelp,
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var before time.Duration
			e.Addr = args[1]
			err := gopeer.Serve(cmd.Context(), args[0], e, func() {
				before = gopeer.CPUTime()
				fmt.Fprintf(stdout, "%s %s\n", serving, e.Addr)
			})
			if err == nil {
				fmt.Fprintf(stdout, usedFormat, (gopeer.CPUTime() - before).Microseconds())
			}
			return err
		},
	}
	adapterFlag(c, &e)
	return c
}

// Lines that a server prints. The first begins with serving when the server is ready. The last has the format usedFormat.
const (
	serving    = "serving on"
	usedFormat = "CPU time %d µs\n"
)

func adapterFlag(c *cobra.Command, e *gopeer.End) {
	c.Flags().StringVar(&e.Adapter, "ia", "", "`adapter` of datxdp, for streams instead of kernel TCP")
}

// runCommand runs the client of such a library, which measures.
func runCommand(stdout io.Writer) *cobra.Command {
	var e gopeer.End
	a := gopeer.Ask{Metric: result.Latency, Size: 64, Duration: time.Second}
	c := &cobra.Command{
		Use:   "run LIBRARY ADDRESS",
		Short: "Measure a library of Go against peers serve, and print JSON",
		Long:  "run measures against peers serve. " + libraryHelp,
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Warmup = warmup(a.Duration)
			e.Addr = args[1]
			r, err := gopeer.Run(cmd.Context(), args[0], e, a)
			if err != nil {
				return err
			}
			return json.NewEncoder(stdout).Encode(r)
		},
	}
	adapterFlag(c, &e)
	f := c.Flags()
	f.StringVar(&a.Metric, "metric", a.Metric, "lat, rate or bw")
	f.IntVar(&a.Size, "size", a.Size, "`bytes` of a message")
	f.DurationVar(&a.Duration, "duration", a.Duration, "measured `time`; a tenth of it is warming up, before")
	f.BoolVar(&a.Buffered, "buffered", false, "gather messages in a buffer of 64 KiB before they are written")
	f.BoolVar(&a.Unary, "unary", false, "make a unary call of each message, of grpc")
	return c
}
