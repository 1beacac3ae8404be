package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/compare"
	"github.com/datxdp/datxdp/cmd/datbench/internal/render"
	"github.com/datxdp/datxdp/internal/result"
)

func (a *app) compareCommand() *cobra.Command {
	percent := -1.0
	c := &cobra.Command{
		Use:               "compare OLD.json NEW.json",
		Short:             "Say what has changed between two sets of results, and whether that can be chance",
		Long:              compareHelp,
		Example:           compareExamples,
		Args:              twoSets,
		PreRun:            endAtOnce,
		ValidArgsFunction: jsonFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("fail-on-regression") && !(percent >= 0 && percent <= 100) {
				return fmt.Errorf("--fail-on-regression: %g is not a percentage from 0 to 100", percent)
			}
			return a.compare(args[0], args[1], percent)
		},
	}
	c.Flags().Float64Var(&percent, "fail-on-regression", percent, "exit with status 1 if a row is worse by more than `PERCENT`, and not by chance")
	c.Flags().Lookup("fail-on-regression").DefValue = "0" // the help does not show this default
	return c
}

const compareHelp = `compare matches rows by operation, metric, size, transport, MTU and all other conditions. It prints the
old and new medians of their runs, the change, and the probability p that such a difference is chance
(Mann-Whitney U test, as in benchstat). A change counts if p is below 0.05.

Runs come from --repeat N. Several files of one side, separated by commas, are pooled. An invalid row
contributes its valid runs only.

Exit status: 0 compared, 1 worse than --fail-on-regression allows, 2 it could not be compared.`

const compareExamples = `  datbench --repeat 10 --json old.json; make build; datbench --repeat 10 --json new.json
  datbench compare old.json new.json
  datbench compare old1.json,old2.json new1.json,new2.json --fail-on-regression 5`

func twoSets(_ *cobra.Command, args []string) error {
	if len(args) == 2 {
		return nil
	}
	return errors.New("compare needs two sets of files: datbench compare OLD.json NEW.json, each a file or several with commas between")
}

// errWorse reports a row that is worse than --fail-on-regression allows: exit status 1.
var errWorse = errors.New("worse than --fail-on-regression allows")

func (a *app) compare(before, after string, percent float64) error {
	old, err := readSet(before)
	if err != nil {
		return err
	}
	recent, err := readSet(after)
	if err != nil {
		return err
	}
	rows := compare.Files(old, recent)
	render.Comparison(a.stdout, rows)
	if bad := compare.Worsened(rows, percent); percent >= 0 && len(bad) > 0 {
		return fmt.Errorf("%d of %d rows are %w: more than %g %%", len(bad), len(rows), errWorse, percent)
	}
	return nil
}

func readSet(names string) (out []*result.Report, err error) {
	for name := range strings.SplitSeq(names, ",") {
		r, err := result.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}
