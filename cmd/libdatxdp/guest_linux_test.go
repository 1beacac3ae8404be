//go:build datprovider

package main_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

// TestGuest runs testdata/guest.c: signals, threads, processes and limits of a program are as without the provider.
func TestGuest(t *testing.T) {
	requireProvider(t)
	guest := compile(t, "guest")
	list, _ := exec.Command(guest).Output() // without arguments it lists its tests and fails
	names := strings.Fields(string(list))
	if len(names) < 10 {
		t.Fatalf("%s has the tests %q only", guest, list)
	}
	overEach(t, func(h *hosts) {
		for _, name := range names {
			h.t.Run(name, func(t *testing.T) {
				h.in(t).start(lab.A, guest+" "+ia+" "+name).judge(verdict{want: []string{"ok " + name}, bad: callsBad})
			})
		}
	})
}
