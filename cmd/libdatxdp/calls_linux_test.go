//go:build datprovider

package main_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

// compile builds a program of testdata against libdat2.
func compile(t *testing.T, name string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("gcc", "-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-unused-function",
		"-o", bin, filepath.Join("testdata", name+".c"), "-ldat2", "-lpthread")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return bin
}

// TestCalls runs testdata/calls.c, which tests the calls that Debian's programs do not make.
func TestCalls(t *testing.T) {
	requireProvider(t)
	calls := compile(t, "calls")
	list, _ := exec.Command(calls).Output() // without arguments it lists its tests and fails
	names := strings.Fields(string(list))
	if len(names) < 10 {
		t.Fatalf("%s has the tests %q only", calls, list)
	}
	overEach(t, func(h *hosts) {
		for _, name := range names {
			h.t.Run(name, func(t *testing.T) {
				h.in(t).start(lab.A, calls+" "+ia+" "+name).judge(verdict{want: []string{"ok " + name}, bad: callsBad})
			})
		}
	})
}
