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

// TestRequestWithoutRoute: if no route leads to the requester, dat_cr_accept succeeds and frees the handle of the request,
// and the endpoint gets an event. The program frees the endpoint, also if the provider has created it.
func TestRequestWithoutRoute(t *testing.T) {
	requireProvider(t)
	requireProgram(t, "ip")
	noroute := compile(t, "noroute")
	overEach(t, func(h *hosts) {
		server := h.start(lab.A, noroute+" "+ia)
		server.awaitText(h.t, "listening", 1)
		client := h.start(lab.B, noroute+" "+ia+" "+lab.A.Addr4().String())
		server.judge(verdict{want: []string{"ok noroute"}, bad: callsBad})
		client.judge(verdict{bad: callsBad})
	})
}

// TestHandlesAreUsedAgain: the handle of a freed object is not used again while a queued event names it. All handles without
// an object are used again.
func TestHandlesAreUsedAgain(t *testing.T) {
	requireProvider(t)
	handles := compile(t, "handles")
	overEach(t, func(h *hosts) {
		h.start(lab.A, handles+" "+ia).judge(verdict{want: []string{"ok handles"}, bad: callsBad})
	})
}
