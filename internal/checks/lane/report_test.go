package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestReport: a result names its revision, each lane with its outcome, and each skip with its reason.
func TestReport(t *testing.T) {
	var out strings.Builder
	h := host{revision: "abc", kernel: "Linux 6.18", goVersion: "go1.26", date: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), cpus: 2}
	printReport(&out, h, []entry{
		{Lane: "race", Seconds: 12.4, CPU: 20.6, Skips: []skipped{{"p.TestRoot", "needs root"}}},
		{Lane: "vm", Seconds: 1, Skips: []skipped{{wholeLane, "no qemu"}}},
		{Lane: "fuzz", Failed: true},
	})
	const want = `# What was tested

` + "`make test-all`" + ` wrote this; it is not edited.

Revision abc, 2 January 2026 03:04 UTC, on Linux 6.18 with 2 CPUs, go1.26.

| lane | result | seconds | CPU seconds | skipped |
|---|---|---|---|---|
| race | passed | 12 | 21 | 1 |
| vm | skipped | 1 | 0 | 1 |
| fuzz | **failed** | 0 | 0 | 0 |

Skipped, and why:

* needs root (race: p.TestRoot)
* no qemu (vm: the whole lane)
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestRun: exit status 77 is a skip with its reason, another a failure, and the journal has both.
func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run("vm", []string{"sh", "-c", "echo working >&2; echo no qemu >&2; exit 77"}, false, ""); err != nil {
		t.Error(err)
	}
	if err := run("fuzz", []string{"false"}, false, ""); err == nil {
		t.Error("a command that fails is no failure")
	}
	all, err := entries()
	if err != nil || len(all) != 2 {
		t.Fatalf("entries %+v, %v", all, err)
	}
	if s := all[0].Skips; all[0].Failed || len(s) != 1 || s[0] != (skipped{wholeLane, "no qemu"}) {
		t.Errorf("skips of the first: %+v", all[0])
	}
	if !all[1].Failed {
		t.Error("the second has not failed")
	}
}

// TestElapsed: lanes that run at the same time count once. A lane that could not start has no time.
func TestElapsed(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 1, 2, 3, 4, s, 0, time.UTC) }
	all := []entry{{Start: at(5), Seconds: 20}, {Start: at(3), Seconds: 10}, {Failed: true}}
	if got := elapsed(all); got != 22*time.Second {
		t.Errorf("got %s, want 22s", got)
	}
}
