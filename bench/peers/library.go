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

const libraryHelp = "LIBRARY is net, quic-go or grpc; ADDRESS is the server's, as 10.0.0.1:7801."

// serveCommand runs the server of a library that this program contains.
func serveCommand(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "serve LIBRARY ADDRESS",
		Short: "Serve peers run over a library of Go",
		Long:  "serve serves peers run. " + libraryHelp,
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return gopeer.Serve(cmd.Context(), args[0], args[1], func() { fmt.Fprintf(stdout, "serving on %s\n", args[1]) })
		},
	}
}

// runCommand runs the client of such a library, which measures.
func runCommand(stdout io.Writer) *cobra.Command {
	a := gopeer.Ask{Metric: result.Latency, Size: 64, Duration: time.Second}
	c := &cobra.Command{
		Use:   "run LIBRARY ADDRESS",
		Short: "Measure a library of Go against peers serve, and print JSON",
		Long:  "run measures against peers serve. " + libraryHelp,
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Warmup = warmup(a.Duration)
			r, err := gopeer.Run(cmd.Context(), args[0], args[1], a)
			if err != nil {
				return err
			}
			return json.NewEncoder(stdout).Encode(r)
		},
	}
	f := c.Flags()
	f.StringVar(&a.Metric, "metric", a.Metric, "lat, rate or bw")
	f.IntVar(&a.Size, "size", a.Size, "`bytes` of a message")
	f.DurationVar(&a.Duration, "duration", a.Duration, "measured `time`; a tenth of it is warming up, before")
	f.BoolVar(&a.Buffered, "buffered", false, "gather messages in a buffer of 64 KiB before they are written")
	f.BoolVar(&a.Unary, "unary", false, "make a unary call of each message, of grpc")
	return c
}
