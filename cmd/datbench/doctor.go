package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

// Findings of a check.
const (
	findingOK   = "ok"
	findingWarn = "warn"
	findingFail = "FAIL"
)

// check is one thing that the doctor looked at, and what to do about it.
type check struct {
	name, finding, detail, fix string
}

var errNotFit = errors.New("this host cannot run DAT over AF_XDP yet; see what failed above")

func (a *app) doctorCommand() *cobra.Command {
	port := uint16(defaultPort)
	c := &cobra.Command{
		Use:   "doctor [INTERFACE...]",
		Short: "Say what this host supports and what to fix; it changes nothing",
		RunE: func(_ *cobra.Command, args []string) error {
			checks, err := examine(args, port)
			if err != nil {
				return err
			}
			a.renderChecks(checks)
			return diagnosis(checks)
		},
	}
	c.Flags().Uint16Var(&port, "port", port, "UDP port that DAT will use")
	return c
}

// diagnosis is an error if any check failed.
func diagnosis(checks []check) error {
	for _, c := range checks {
		if c.finding == findingFail {
			return errNotFit
		}
	}
	return nil
}

func (a *app) renderChecks(checks []check) {
	t := plainTable(a.stdout)
	t.AppendHeader(table.Row{"check", "", "found", "what to do"})
	// Wide enough for a terminal of 80 columns.
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 3, WidthMax: 28, WidthMaxEnforcer: text.WrapSoft},
		{Number: 4, WidthMax: 28, WidthMaxEnforcer: text.WrapSoft},
	})
	for _, c := range checks {
		t.AppendRow(table.Row{c.name, c.finding, c.detail, c.fix})
	}
	t.Render()
}

// verdict is a check that is fine, or fails with a way out.
func verdict(name string, fine bool, detail, fix string) check {
	if fine {
		return check{name, findingOK, detail, ""}
	}
	return check{name, findingFail, detail, fix}
}

// advice is a check that works either way, better if fine.
func advice(name string, fine bool, detail, fix string) check {
	c := verdict(name, fine, detail, fix)
	if !fine {
		c.finding = findingWarn
	}
	return c
}

// kernelFeatures are what newer kernels add, oldest first.
var kernelFeatures = []struct {
	major, minor int
	what         string
}{
	{6, 6, "jumbo frames (multi-buffer)"},
	{6, 8, "transmit metadata"},
	{6, 17, "a larger transmit budget"},
}

// kernelCheck reads a release such as "6.18.44-generic".
func kernelCheck(release string) check {
	major, minor, ok := parseRelease(release)
	if !ok {
		return check{"kernel", findingWarn, release, "version not understood; Linux 5.11 or newer is needed"}
	}
	if !atLeast(major, minor, 5, 11) {
		return verdict("kernel", false, release, "upgrade to Linux 5.11 or newer")
	}
	var missing []string
	for _, f := range kernelFeatures {
		if !atLeast(major, minor, f.major, f.minor) {
			missing = append(missing, fmt.Sprintf("%s comes with %d.%d", f.what, f.major, f.minor))
		}
	}
	return advice("kernel", len(missing) == 0, release, strings.Join(missing, "; "))
}

func parseRelease(release string) (major, minor int, ok bool) {
	n, err := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return major, minor, n == 2 && err == nil
}

func atLeast(major, minor, wantMajor, wantMinor int) bool {
	return major > wantMajor || major == wantMajor && minor >= wantMinor
}
