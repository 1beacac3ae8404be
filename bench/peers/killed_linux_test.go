package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// soon is the time after which a killed program must have left nothing behind. The kernel removes namespaces slowly.
const soon = 15 * time.Second

// TestKilled: when the program is ended during a run, in any way, no process, namespace or mount is left.
func TestKilled(t *testing.T) {
	labtest.RequireRoot(t)
	before := sysMounts(t)
	dir := tools(t, map[string]string{"datbench": fakeDatbench})
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd := program(t, "--duration", "1h", "--limit", "1h", "--peer", "net", "--metric", "lat", "--datbench", dir+"/datbench")
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			stderr := start(t, cmd)
			stderr.await(t, "[ 2/6] round trip at MTU 1500, Go net TCP")
			made := tracesOf(t, cmd.Process.Pid)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			stderr.rest()
			_ = cmd.Wait() // ProcessState has the result
			made.awaitGone(t)
			if diff := cmp.Diff(before, sysMounts(t)); diff != "" {
				t.Errorf("mounts on /sys (-before +after):\n%s", diff)
			}
			if signal == syscall.SIGKILL {
				return
			}
			if code := cmd.ProcessState.ExitCode(); code != exitInvalid || stderr.last != "peers: interrupted; nothing is left behind" ||
				!strings.Contains(stdout.String(), "Ended early") || !strings.Contains(stdout.String(), "datxdp send") {
				t.Errorf("got exit %d, %q\n%s", code, stderr.last, &stdout)
			}
		})
	}
}

// lines collects the output lines of a program.
type lines struct {
	s    *bufio.Scanner
	last string
}

func start(t *testing.T, cmd *exec.Cmd) *lines {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // fails if it has ended
	return &lines{s: bufio.NewScanner(stderr)}
}

func (l *lines) await(t *testing.T, wanted string) {
	t.Helper()
	for l.s.Scan() {
		if l.last = l.s.Text(); l.last == wanted {
			return
		}
	}
	t.Fatalf("it ended with %q", l.last)
}

func (l *lines) rest() {
	for l.s.Scan() {
		l.last = l.s.Text()
	}
}

// traces are the processes and namespaces that a program has created.
type traces struct{ pids, namespaces []string }

// tracesOf waits until the program has started both sides of a measurement, and returns its traces.
func tracesOf(t *testing.T, pid int) (made traces) {
	t.Helper()
	for deadline := time.Now().Add(soon); len(made.pids) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it has the children %v only", made.pids)
		}
		made.pids = nil
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, _ := os.ReadFile(file) // fails if the thread has ended
			made.pids = append(made.pids, strings.Fields(string(text))...)
		}
	}
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range made.pids {
		if ns, err := os.Readlink("/proc/" + pid + "/ns/net"); err == nil && ns != home {
			made.namespaces = append(made.namespaces, ns)
		}
	}
	if len(made.namespaces) < 2 {
		t.Fatalf("its children are in %v, want two namespaces", made.namespaces)
	}
	return made
}

// awaitGone waits until the kernel has removed all traces. It polls, because the kernel does not report this.
func (m traces) awaitGone(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) {
		still := m.left(t)
		if len(still) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind after %s: %v", soon, still)
		}
	}
}

func (m traces) left(t *testing.T) (still []string) {
	t.Helper()
	for _, pid := range m.pids {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			still = append(still, "process "+pid)
		}
	}
	for _, pattern := range []string{"/proc/[0-9]*/task/*/ns/net", "/proc/[0-9]*/fd/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if ns, err := os.Readlink(file); err == nil && slices.Contains(m.namespaces, ns) {
				still = append(still, file+" is "+ns)
			}
		}
	}
	return still
}

// sysMounts returns the mounts on /sys in the host's mount namespace.
func sysMounts(t *testing.T) (found []string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " /sys ") {
			found = append(found, line)
		}
	}
	return found
}
