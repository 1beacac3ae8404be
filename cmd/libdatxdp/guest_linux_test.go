//go:build datprovider

package main_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

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

// TestLoad runs testdata/load.c on both hosts: verified traffic while the programs fork and get signals.
func TestLoad(t *testing.T) {
	requireProvider(t)
	duration := 30 * time.Minute
	if testing.Short() {
		duration = 4 * time.Second
	}
	load := compile(t, "load")
	for _, link := range []string{"xdp", "udp"} {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			h := newHosts(t, link)
			line := fmt.Sprintf("%s %s %d", load, ia, int(duration.Seconds()))
			server := h.startFor(lab.A, line, duration+limit)
			server.awaitText(t, "listening", 1)
			client := h.startFor(lab.B, line+" "+lab.A.Addr4().String(), duration+limit)
			client.judge(verdict{want: []string{"ok load"}, bad: callsBad})
			server.judge(verdict{want: []string{"ok load"}, bad: callsBad})
		})
	}
}
