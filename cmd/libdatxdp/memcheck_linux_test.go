//go:build datprovider && memcheck

package main_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

// fault is an error in a report of memcheck.
type fault struct {
	Kind   string `xml:"kind"`
	What   string `xml:"what"`
	Leak   string `xml:"xwhat>text"`
	Frames []struct {
		Object   string `xml:"obj"`
		Function string `xml:"fn"`
		File     string `xml:"file"`
		Line     string `xml:"line"`
	} `xml:"stack>frame"`
}

// inC reports whether a function of the C part of the library is in the call stack of the fault. For a leak only the
// top of the stack counts: malloc or strdup and their caller. A function with a dot in its name is a Go function.
func (f fault) inC(library string) bool {
	frames := f.Frames
	if strings.HasPrefix(f.Kind, "Leak_") {
		frames = frames[:min(len(frames), 3)]
	}
	for _, frame := range frames {
		if frame.Object == library && frame.Function != "" && !strings.Contains(frame.Function, ".") {
			return true
		}
	}
	return false
}

func (f fault) String() string {
	lines := []string{f.Kind + ": " + f.What + f.Leak}
	for _, frame := range f.Frames {
		lines = append(lines, "    "+frame.Function+" "+frame.File+":"+frame.Line)
	}
	return strings.Join(lines, "\n")
}

// memcheck returns a command that runs line under valgrind, and the file for valgrind's report. Valgrind runs one
// thread at a time. With its default schedule, a thread that polls can keep other threads from running for so long that
// connections break. The command therefore uses the fair schedule. Valgrind tells programs that the processor has the
// instruction RDTSCP, but refuses it if this host lacks it, so the Go runtime must not use it.
func memcheck(t *testing.T, line string) (command, report string) {
	requireProgram(t, strings.Fields(line)[0])
	program, err := exec.LookPath(strings.Fields(line)[0])
	must(t, err)
	report = filepath.Join(t.TempDir(), "report.xml")
	return strings.Join(append([]string{"env", "GODEBUG=cpu.rdtscp=off", "valgrind", "--error-limit=no", "--fair-sched=yes", "--child-silent-after-fork=yes",
		"--leak-check=full", "--show-leak-kinds=definite", "--num-callers=20", "--suppressions=testdata/valgrind.supp", "--xml=yes", "--xml-file=" + report, program},
		strings.Fields(line)[1:]...), " "), report
}

// faultless fails the test if a report is missing or has errors of the provider's C code.
func faultless(t *testing.T, report string) {
	t.Helper()
	file, err := os.Open(report)
	must(t, err)
	defer file.Close()
	all, status := 0, 0
	for d := xml.NewDecoder(file); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		start, ok := token.(xml.StartElement)
		switch {
		case ok && start.Name.Local == "status":
			status++
		case ok && start.Name.Local == "error":
			var f fault
			must(t, d.DecodeElement(&f, &start))
			if all++; f.inC(requireProvider(t)) {
				t.Error(f)
			}
		}
	}
	if status != 2 {
		t.Errorf("%s has no beginning and end", report)
	}
	t.Logf("memcheck: %d faults that are not suppressed", all)
}

// TestMemcheck runs the C tests and dtest under valgrind, and dtest in secure mode too. The library must have symbols.
func TestMemcheck(t *testing.T) {
	requireProvider(t)
	requireProgram(t, "valgrind")
	calls := compile(t, "calls")
	list, _ := exec.Command(calls).Output()
	overEach(t, func(h *hosts) {
		h.t.Run("calls", func(t *testing.T) {
			line, report := memcheck(t, calls+" "+ia+" "+strings.Join(strings.Fields(string(list)), " "))
			h.in(t).start(lab.A, line).judge(verdict{bad: callsBad})
			faultless(t, report)
		})
		h.memcheckDTest()
	})
	t.Run("secure", func(t *testing.T) {
		overSecure(t, func(h *hosts, _ *keyring) { h.memcheckDTest() })
	})
}

// memcheckDTest runs both sides of dtest under valgrind.
func (h *hosts) memcheckDTest() {
	h.t.Run("dtest", func(t *testing.T) {
		h := h.in(t)
		const line = "dtest -P ia -b 4096 -B 10"
		a, reportA := memcheck(t, line+" -s")
		b, reportB := memcheck(t, line+" -h "+lab.A.Addr4().String())
		server := h.start(lab.A, a)
		server.awaitListen(rendezvous)
		h.start(lab.B, b).judge(verdict{want: []string{passed}, bad: dtestBad})
		server.judge(verdict{want: []string{passed}, bad: dtestBad})
		faultless(t, reportA)
		faultless(t, reportB)
	})
}
