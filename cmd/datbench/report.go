package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/report"
	"github.com/datxdp/datxdp/internal/result"
)

func (a *app) reportCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:     "report RESULT.json...",
		Short:   "Make one HTML page of results, with charts, that needs no network",
		Long:    reportHelp,
		Example: reportExamples,
		Args:    someFiles("report"),
		PreRun:  endAtOnce,
		RunE:    func(_ *cobra.Command, args []string) error { return a.report(args, out) },

		ValidArgsFunction: jsonFiles,
	}
	c.Flags().StringVarP(&out, "output", "o", "report.html", "HTML `file` to write; - is standard output")
	return c
}

// The text takes the conditions from their declarations.
var reportHelp = `report makes one HTML page from files that --json wrote. The page shows the distribution of round trips,
bandwidth and message rate by size or MTU, our operations beside raw AF_XDP and kernel TCP, all rows and
the environment. It draws the valid runs of a repeated row, and lists the others with the reason. It
shows several files side by side, on the same axes. It needs no other files.

The JSON is {"env": {...}, "results": [...]}. Each result always has
  op metric size transport mode mtu p50_us p99_us p999_us msgs_per_s gbps samples retransmits drops
  valid reason
and where they apply
  min_us p90_us p9999_us max_us   more of the round trips; p99.99 from 10 000 samples on
  histogram_us                    [upper_us, count] of each non-empty bucket of the round trips
  runs                            with --repeat, the figure of each valid run: p50_us, msgs_per_s or
                                  gbps; the row itself is all runs taken together
  parts                           for tcp, the figure of each connection that shares the row's time
  rounds                          each run with its figures, whether it is valid, and why not; round 1 of
                                  all rows was measured first, then round 2
  raw_ratio raw_p99_ratio         the figure, and the p99, divided by that of raw at the same MTU; with
                                  --repeat the median of the ratios of the rounds
  bidir                           with --bidir, each direction; the row itself is the sum
  intervals                       with --interval, the parts of the row's time as the client saw them
  kept_percent p99_ratio          with --impair, the ratio to the unimpaired row
and the conditions that differ from the default
` + strings.TrimSuffix(result.Help(34), "\n")

const reportExamples = `  datbench --json new.json && datbench report new.json -o new.html
  datbench report old.json new.json -o both.html`

// someFiles requires at least one file argument.
func someFiles(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs files that datbench --json wrote; see datbench %[1]s --help", command)
		}
		return nil
	}
}

// jsonFiles completes names of result files.
func jsonFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
}

func (a *app) report(names []string, out string) error {
	var files []report.File
	for _, name := range names {
		r, err := result.ReadFile(name)
		if err != nil {
			return err
		}
		files = append(files, report.File{Name: strings.TrimSuffix(filepath.Base(name), ".json"), Report: r})
	}
	var page bytes.Buffer
	if err := report.Write(&page, files); err != nil {
		return err
	}
	if out == "-" {
		_, err := a.stdout.Write(page.Bytes())
		return err
	}
	if err := os.WriteFile(out, page.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	fmt.Fprintf(a.stdout, "%s: %d %s, %d KiB\n", out, len(files), map[bool]string{true: "file", false: "files"}[len(files) == 1], page.Len()>>10)
	return nil
}
