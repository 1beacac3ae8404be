package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/render"
	"github.com/datxdp/datxdp/internal/compare"
	"github.com/datxdp/datxdp/internal/result"
)

// boundsText is what datbench --full is judged by, unless a file says otherwise.
//
//go:embed bounds.json
var boundsText []byte

func (a *app) checkCommand() *cobra.Command {
	var bounds string
	c := &cobra.Command{
		Use:               "check RESULT.json",
		Short:             "Say whether results keep their bounds beside raw AF_XDP and kernel TCP of the same run",
		Long:              checkHelp,
		Example:           checkExamples,
		Args:              oneFile,
		ValidArgsFunction: jsonFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return a.check(args[0], bounds) },
	}
	c.Flags().StringVar(&bounds, "bounds", "", "`file` of bounds, instead of those of this program (cmd/datbench/bounds.json)")
	completeFiles(c, "bounds")
	return c
}

const checkHelp = `check judges what datbench --full has measured by ratios, so that hosts of any speed can be told the
same: each quantity of a row over that of raw AF_XDP frames or kernel TCP at the same MTU in the same
run. Of --repeat N it takes the median of the ratios of the rounds, in each of which both rows were
measured seconds apart: what slows the host down for a while slows both. More than half of the rounds
must be valid in both rows.

Bounds are {"bounds": [...]}, each with op, metric, size and mtu of the row, connections and churn_bytes
where it has them, of (p50_us, p99_us, p999_us, msgs_per_s or gbps), over (raw, tcp, ...), target and
bound. Times may be at most, rates must be at least as much. The target is what is aimed at; only the
bound fails a run. Without over the quantity itself is shown beside its target, and never judged.

Exit status: 0 all bounds hold, 1 one does not, or its rows are missing or not valid, 2 the files cannot
be used.`

const checkExamples = `  datbench --full --repeat 5 --json new.json; datbench check new.json    # make perf
  datbench check new.json --bounds my.json`

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return errors.New("check needs one file of datbench --full --json: datbench check RESULT.json")
}

// errBroken ends a check that found a bound that does not hold: exit status 1.
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
		return fmt.Errorf("%s is of a run that was ended early: measure again", name)
	}
	if judged, broken := render.Judgements(a.stdout, compare.Judge(r, bounds)); broken > 0 {
		return fmt.Errorf("%d of %d bounds %w", broken, judged, errBroken)
	}
	return nil
}

// readBounds reads those of a file, or of the program if it has no name.
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
