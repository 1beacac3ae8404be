package main

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/result"
)

// TestHelp: the defaults in the help of every command are correct.
func TestHelp(t *testing.T) {
	var out bytes.Buffer
	root := (&app{stdout: &out, stderr: &out}).rootCommand()
	for _, c := range append(root.Commands(), root) {
		out.Reset()
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for _, empty := range []string{"(default )", "(default -1)"} {
			if strings.Contains(out.String(), empty) {
				t.Errorf("%s --help has %s:\n%s", c.CommandPath(), empty, out.String())
			}
		}
	}
}

// TestHelpOperations: the help names every operation of datbench, and that of run every operation of package dat.
func TestHelpOperations(t *testing.T) {
	for _, e := range []struct {
		help string
		want []string
	}{
		{inProcess(t, "--help").stdout, result.OperationNames()},
		{inProcess(t, "run", "--help").stdout, result.OperationNames(result.ClassDAT)},
	} {
		if want := strings.Join(e.want, ", "); !strings.Contains(e.help, want) {
			t.Errorf("the help does not have %s:\n%s", want, e.help)
		}
	}
}

// TestVersion: the version is printed, because a report about a fault needs it.
func TestVersion(t *testing.T) {
	got := inProcess(t, "--version")
	want := "datbench " + result.BuildVersion() + ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	if got.stdout != want || got.code != exitValid || got.stderr != "" {
		t.Errorf("exit %d, %q, %q, want %q", got.code, got.stdout, got.stderr, want)
	}
}
