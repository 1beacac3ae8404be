//go:build datprovider

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// patience is the time limit for the release of the resources of an ended program. The kernel releases sockets, BPF
// maps and BPF programs in the background.
const patience = 20 * time.Second

// leavesNothing makes the test fail at the end of the test if the programs of the test have left resources behind. Call
// leavesNothing before the first program starts, because resources that exist at the time of the call are ignored.
func (h *hosts) leavesNothing() {
	before := h.holdings()
	h.t.Cleanup(func() {
		var extra, missing []string
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			after := h.holdings()
			extra, missing = without(after, before), without(before, after)
			if len(extra)+len(missing) == 0 {
				return
			}
		}
		h.t.Errorf("left behind: %q; gone that was there before: %q", extra, missing)
	})
}

// holdings lists resources, one line for each: processes in the lab's namespaces, mounts of these namespaces, and XDP
// programs in them.
func (h *hosts) holdings() (held []string) {
	var namespaces []string
	for _, s := range []lab.Side{lab.A, lab.B} {
		err := h.lab.Do(s, func() error {
			namespaces = append(namespaces, namespaceOf("thread-self"))
			id, err := labtest.ProgramOn(lab.Interface)
			if id != 0 {
				held = append(held, fmt.Sprintf("XDP program %d on side %s", id, s))
			}
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	held = append(held, mountsOf(h.t, namespaces)...)
	return append(held, processesIn(namespaces)...)
}

// processesIn returns the processes in the namespaces.
func processesIn(namespaces []string) (found []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		ns := namespaceOf(filepath.Base(dir)) // fails if the process has just ended
		if slices.Contains(namespaces, ns) {
			line, _ := os.ReadFile(dir + "/cmdline")
			found = append(found, fmt.Sprintf("process %s in %s: %q", filepath.Base(dir), ns, strings.ReplaceAll(string(line), "\x00", " ")))
		}
	}
	return found
}

func namespaceOf(pid string) string {
	ns, _ := os.Readlink("/proc/" + pid + "/ns/net")
	return ns
}

// mountsOf returns the mounts of the namespaces.
func mountsOf(t *testing.T, namespaces []string) (found []string) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && slices.Contains(namespaces, f[3]) {
			found = append(found, fmt.Sprintf("mount of %s at %s", f[3], f[4]))
		}
	}
	return found
}

// without returns the elements of all that are not in some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// TestHoldings: holdings lists every kind of resource that a program may leave behind.
func TestHoldings(t *testing.T) {
	labtest.RequireXDP(t)
	h := &hosts{t: t, lab: labtest.New(t, lab.Options{})}
	before := h.holdings()
	see := func(want string) {
		t.Helper()
		if extra := without(h.holdings(), before); !slices.ContainsFunc(extra, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("got %q, want a %s", extra, want)
		}
	}
	sleeper := h.start(lab.B, "sleep 100")
	see(fmt.Sprintf("process %d ", sleeper.cmd.Process.Pid))
	must(t, sleeper.cmd.Process.Kill())
	<-sleeper.done
	must(t, h.lab.Do(lab.B, func() error {
		p, err := labtest.AttachProgram(lab.Interface, false)
		if err == nil {
			see("XDP program")
			err = p.Close()
		}
		return err
	}))
}
