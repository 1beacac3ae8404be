package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// TestBusy: with --busy 0,2 each row is measured without and beside two busy loops. The report says how many there were,
// and how long the threads waited for a core. The other numbers are refused.
func TestBusy(t *testing.T) {
	got := datbench(t, "--transport", "udp", "--op", "send,tcp", "--metric", "lat", "--busy", "0,2", "--duration", "500ms",
		"--port", "17681", "--json", "-")
	r := checkReport(t, got, []byte(got.stdout))
	checkBesideLoops(t, r, "send 0", "send 2", "tcp 0", "tcp 2")
	for args, want := range map[string]string{
		"-1":  "--busy: -1 is not from 0 to 512",
		"513": "--busy: 513 is not from 0 to 512",
		"4,4": "--busy: 4 is there twice",
	} {
		if got := datbench(t, "--transport", "udp", "--busy="+args); got.code != exitUsage || got.lastLine() != "datbench: "+want {
			t.Errorf("%s: exit %d, %q, want %q", args, got.code, got.lastLine(), want)
		}
	}
}

// TestRunBusy: a client's busy loops compute at both ends, and a server refuses more than it allows.
func TestRunBusy(t *testing.T) {
	got := runUDP(t, "17683", "--busy", "0,1", "--duration", "500ms", "--json", "-")
	checkBesideLoops(t, checkReport(t, got, []byte(got.stdout)), "send 0", "send 1")
	got = runUDP(t, "17683", "--busy", "17")
	if want := "refused: --busy 17 is more than the 16 of this server"; !strings.Contains(got.lastLine(), want) {
		t.Errorf("exit %d, %q, want %q", got.code, got.lastLine(), want)
	}
}

func checkBesideLoops(t *testing.T, r result.Report, want ...string) {
	t.Helper()
	var got []string
	for _, res := range r.Results {
		got = append(got, fmt.Sprint(res.Op, " ", res.Busy))
		if res.Client == nil || res.Client.Elapsed <= 0 || res.Busy > 0 && res.Client.RunDelay <= 0 {
			t.Errorf("%s: threads %+v", res.Title(), res.Client)
		}
		if server := res.Server; (server == nil) != (res.Op == result.TCP) || server != nil && res.Busy > 0 && server.RunDelay <= 0 {
			t.Errorf("%s: threads of the server %+v", res.Title(), server)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got rows %v, want %v", got, want)
	}
}

// TestBusyLoopsEnd: the busy loops end with the process that started them, also if it is killed.
func TestBusyLoopsEnd(t *testing.T) {
	job := start(t, "--transport", "udp", "--op", "send", "--metric", "lat", "--busy", "2", "--duration", "1m", "--port", "17685")
	var loops []int
	awaitThat(t, "the busy loops to compute", func() bool { loops = computing(job.cmd.Process.Pid); return len(loops) > 0 })
	if err := job.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	job.wait(t)
	awaitThat(t, "the busy loops to end", func() bool {
		for _, pid := range loops {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
				return false
			}
		}
		return true
	})
}

// computing returns the processes below pid that run busy loops.
func computing(pid int) (found []int) {
	var children []int
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // none if it has ended
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for field := range strings.FieldsSeq(string(text)) {
			var child int
			_, _ = fmt.Sscan(field, &child) // the kernel writes numbers
			children = append(children, child)
		}
	}
	for _, child := range children {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child)); strings.Contains(string(line), "\x00busy\x00") {
			found = append(found, child)
		}
		found = append(found, computing(child)...)
	}
	return found
}

// awaitThat polls a condition of other processes, which send no event.
func awaitThat(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal("this did not happen: ", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
