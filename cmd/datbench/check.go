package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/compare"
	"github.com/datxdp/datxdp/cmd/datbench/internal/render"
	"github.com/datxdp/datxdp/internal/result"
)

// boundsText holds the default bounds of the check command.
//
//go:embed bounds.json
var boundsText []byte

func (a *app) checkCommand() *cobra.Command {
	var bounds string
	c := &cobra.Command{
		Use:               "check RESULT.json",
		Short:             "Check ratios to raw AF_XDP and kernel TCP of the same run against bounds",
		Long:              checkHelp,
		Example:           checkExamples,
		Args:              oneFile,
		PreRun:            endAtOnce,
		ValidArgsFunction: jsonFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return a.check(args[0], bounds) },
	}
	c.Flags().StringVar(&bounds, "bounds", "", "`file` of bounds, instead of those of this program (cmd/datbench/bounds.json)")
	completeFiles(c, "bounds")
	return c
}

const checkHelp = `check judges the results of datbench --full by ratios, so that the same bounds fit hosts of any speed.
It divides a quantity of a row by that of raw AF_XDP frames or kernel TCP at the same MTU in the same
run. With --repeat N it takes the median of the ratios of the rounds. A round measures both rows
seconds apart, so that a temporary slowdown of the host affects both. More than half of the rounds must
be valid in both rows.

Bounds are {"bounds": [...]}. Each has op, metric, size and mtu of the row, connections and churn_bytes
if the row has them, of (p50_us, p99_us, p999_us, msgs_per_s or gbps), over (raw, tcp, ...; unimpaired
for the same row without its impair), target and bound. A time must not exceed the bound, a rate must
reach it. The target is the aim; only the bound fails a run. Without over the quantity itself is shown
beside its target and not judged.

Exit status: 0 all bounds hold, 1 a bound does not hold, or its rows are missing or invalid, 2 the files
cannot be used.`

const checkExamples = `  datbench --full --repeat 5 --json new.json; datbench check new.json    # make perf
  datbench check new.json --bounds my.json`

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return errors.New("check needs one file of datbench --full --json: datbench check RESULT.json")
}

// errBroken reports that a bound does not hold: exit status 1.
var errBroken = errors.New("do not hold")

func (a *app) check(name, boundsName string) error {
	bounds, err := readBounds(boundsName)
	if err != nil {
		return err
	}
	r, err := result.ReadFile(name)
	if err != nil {
		return err
	}
	if r.Env.Interrupted {
		return fmt.Errorf("%s is the result of an interrupted run: measure again", name)
	}
	if judged, broken := render.Judgements(a.stdout, compare.Judge(r, bounds)); broken > 0 {
		return fmt.Errorf("%d of %d bounds %w", broken, judged, errBroken)
	}
	return nil
}

// readBounds reads the bounds from a file. If name is empty, it reads the built-in bounds.
func readBounds(name string) ([]compare.Bound, error) {
	if name == "" {
		return compare.ParseBounds(boundsText)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--bounds: %w", err)
	}
	bounds, err := compare.ParseBounds(text)
	if err != nil {
		return nil, fmt.Errorf("--bounds: %s: %w", name, err)
	}
	return bounds, nil
}
