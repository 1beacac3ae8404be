package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/internal/result"
)

// cleanupLimit is the time limit for the removal of everything that a killed job leaves behind. The limit is long
// because the kernel removes a namespace only some time after the last process in it has ended, and because the kernel
// removes one namespace after the other.
const cleanupLimit = 30 * time.Second

// killSeed returns the generator for the moments at which jobs are killed. Its seed is DATXDP_SEED, or the time.
func killSeed(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("DATXDP_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again with DATXDP_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// traces are the kernel objects that a running datbench has created.
type traces struct {
	// agents are the process IDs of its children.
	agents []int
	// namespaces are the network namespaces of the children, such as "net:[4026532000]".
	namespaces []string
	// programs are the IDs of the BPF programs that the children hold.
	programs []uint32
	// takenAt is the time of this snapshot, in ticks since boot. Processes that began later are ignored, because the
	// kernel may give the number of a removed namespace to a new namespace.
	takenAt uint64
}

// began returns when a process began, in ticks since boot; 0 if the process has ended.
func began(pid string) uint64 {
	b, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := bytes.Cut(b, []byte(") "))
	f := bytes.Fields(rest)
	const starttime = 22 - 3 // proc_pid_stat(5); rest begins with the third field
	if len(f) <= starttime {
		return 0
	}
	n, _ := strconv.ParseUint(string(f[starttime]), 10, 64)
	return n
}

// ticks returns the time since boot, in ticks of 10 ms.
func ticks(t *testing.T) uint64 {
	t.Helper()
	b, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(b), " ")
	n, err := strconv.ParseUint(strings.Replace(up, ".", "", 1), 10, 64) // the file has seconds with two decimals
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// traces examines the children of a running datbench. It skips processes that end meanwhile.
func (r *running) traces(t *testing.T) (found traces) {
	t.Helper()
	found.takenAt = ticks(t)
	home := namespaceOf("self")
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, _ := os.ReadFile(file) // fails if the thread has ended
		for _, pid := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			found.agents = append(found.agents, n)
			if ns := namespaceOf(pid); ns != "" && ns != home {
				found.namespaces = append(found.namespaces, ns)
			}
			found.programs = append(found.programs, programsOf(pid)...)
		}
	}
	return found
}

// namespaceOf returns the network namespace of a process; empty if the process has ended.
func namespaceOf(pid string) string {
	ns, err := os.Readlink("/proc/" + pid + "/ns/net")
	if err != nil {
		return ""
	}
	return ns
}

// programsOf returns the BPF programs for which a process has a descriptor.
func programsOf(pid string) (ids []uint32) {
	files, err := filepath.Glob("/proc/" + pid + "/fdinfo/*")
	if err != nil {
		return nil
	}
	for _, file := range files {
		b, _ := os.ReadFile(file) // fails if the descriptor was closed
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			if value, ok := strings.CutPrefix(s.Text(), "prog_id:"); ok {
				if id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); err == nil {
					ids = append(ids, uint32(id))
				}
			}
		}
	}
	return ids
}

// remaining returns the traces that still exist. A trace exists as long as something keeps it:
//
//   - A process, a descriptor or a mount keeps a namespace.
//   - A descriptor, a link or an interface keeps an XDP program.
//   - A namespace keeps its interfaces.
func (tr traces) remaining(t *testing.T) (still []string) {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/ns/net", "/proc/[0-9]*/task/*/ns/net", "/proc/[0-9]*/fd/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if ns, err := os.Readlink(file); err == nil && slices.Contains(tr.namespaces, ns) && began(strings.Split(file, "/")[2]) <= tr.takenAt {
				still = append(still, file+" is "+ns)
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range tr.namespaces {
		if bytes.Contains(mounts, []byte(ns)) {
			still = append(still, ns+" is mounted")
		}
	}
	for _, id := range tr.programs {
		if programLives(t, id) {
			still = append(still, fmt.Sprintf("BPF program %d", id))
		}
	}
	return still
}

// programLives reports whether a BPF program still exists.
//
// System calls: bpf(BPF_PROG_GET_FD_BY_ID), close.
func programLives(t *testing.T, id uint32) bool {
	t.Helper()
	const getFDByID = 13 // BPF_PROG_GET_FD_BY_ID of linux/bpf.h
	number, ok := map[string]uintptr{"amd64": 321, "arm64": 280}[runtime.GOARCH]
	if !ok {
		t.Fatalf("number of bpf(2) on %s", runtime.GOARCH)
	}
	attr := struct{ id, next, flags, pad uint32 }{id: id}
	// The conversion is in the argument list of the call, which keeps attr alive.
	fd, _, errno := syscall.Syscall(number, getFDByID, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno == 0 {
		_ = syscall.Close(int(fd))
	} else if errno != syscall.ENOENT {
		t.Fatalf("bpf(BPF_PROG_GET_FD_BY_ID): %v", errno)
	}
	return errno == 0
}

// awaitNothing waits until the kernel has removed all traces. It polls, because the kernel does not report this.
func (tr traces) awaitNothing(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(cleanupLimit); ; time.Sleep(10 * time.Millisecond) {
		still := tr.remaining(t)
		if len(still) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind after %s: %v", cleanupLimit, still)
		}
	}
}

// surroundings lists the interfaces of this namespace, the XDP programs on them, and the named namespaces.
func surroundings(t *testing.T) (found []string) {
	t.Helper()
	ifis, err := chosenInterfaces(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, ifi := range ifis {
		id, mode, err := attachedXDP(ifi.Index)
		found = append(found, fmt.Sprintf("%s: XDP program %d, %s, %v", ifi.Name, id, mode, err))
	}
	named, err := filepath.Glob("/run/netns/*")
	if err != nil {
		t.Fatal(err)
	}
	return append(found, named...)
}

// TestKilled: nothing is left behind, however and whenever the main job is ended.
func TestKilled(t *testing.T) {
	labtest.RequireXDP(t)
	random := killSeed(t)
	before := surroundings(t)
	// The whole job takes about two seconds with these flags, so the last moments are near its end.
	const length = 2200 * time.Millisecond
	made := traces{}
	part := 1
	if testing.Short() {
		part = 2
	}
	for _, tt := range []struct {
		signal syscall.Signal
		times  int
	}{{syscall.SIGKILL, 10}, {syscall.SIGINT, 4}, {syscall.SIGTERM, 4}} {
		times := tt.times / part
		for i := range times {
			// The moments are spread over the job: one at random in each of several equal parts.
			moment := (time.Duration(i)*length + time.Duration(random.Int64N(int64(length)))) / time.Duration(times)
			t.Run(fmt.Sprintf("%v after %s", tt.signal, moment.Round(time.Millisecond)), func(t *testing.T) {
				job := start(t, "--transport", "xdp", "--duration", "20ms", "--warmup", "5ms")
				ended := job.await(moment)
				tr := job.traces(t)
				_ = job.cmd.Process.Signal(tt.signal) // fails if the job has ended already
				got := job.wait(t)
				job.awaitGone(t)
				tr.awaitNothing(t)
				if diff := cmp.Diff(before, surroundings(t)); diff != "" {
					t.Errorf("interfaces, XDP programs, named namespaces (-before +after):\n%s", diff)
				}
				if tt.signal != syscall.SIGKILL && !ended {
					checkInterrupted(t, job, got)
				}
				made.namespaces, made.programs = append(made.namespaces, tr.namespaces...), append(made.programs, tr.programs...)
			})
		}
	}
	// Otherwise the test would have examined nothing.
	if len(made.namespaces) < 6 || len(made.programs) < 6 {
		t.Errorf("got %d namespaces, %d programs in all: too few to say anything", len(made.namespaces), len(made.programs))
	}
}

// await waits until the job has ended, for at most d.
func (r *running) await(d time.Duration) (ended bool) {
	select {
	case <-r.read:
		return true
	case <-time.After(d):
		return false
	}
}

// checkInterrupted checks that an interrupted job reports the interruption below its results so far. No report is
// required of a job that had not begun or was already complete.
func checkInterrupted(t *testing.T, job *running, got outcome) {
	t.Helper()
	const want = "datbench: interrupted; nothing is left behind"
	early := got.stderr == "" && job.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled()
	late := got.stdout != "" && !strings.Contains(got.stdout, "Ended early: ")
	if !early && !late && (got.code != exitInvalid || got.lastLine() != want) {
		t.Errorf("got exit %d, %q, want %d, %q", got.code, got.lastLine(), exitInvalid, want)
	}
}

// TestAgentKilled: if an agent is killed, the main job ends soon and names the agent.
func TestAgentKilled(t *testing.T) {
	labtest.RequireXDP(t)
	random := killSeed(t)
	for i, during := range []string{"round trip raw ", "message rate send", "round trip tcp", "bandwidth write 1 MiB at MTU 9000"} {
		for victim := range 2 {
			if testing.Short() && victim != i%2 {
				continue
			}
			t.Run(fmt.Sprintf("agent %d during %s", victim, during), func(t *testing.T) {
				job := start(t, "--transport", "xdp", "--duration", "30ms", "--warmup", "10ms", "--json", "-")
				job.awaitLine(t, during)
				job.await(time.Duration(random.Int64N(int64(30 * time.Millisecond))))
				tr := job.traces(t)
				if len(tr.agents) != 2 {
					t.Fatalf("got agents %v, want two", tr.agents)
				}
				if still := tr.remaining(t); len(still) < 4 {
					t.Errorf("of a job that runs, only this is seen: %v", still)
				}
				slices.Sort(tr.agents)
				if err := syscall.Kill(tr.agents[victim], syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				killed := time.Now()
				got := job.wait(t)
				if took := time.Since(killed); took > cleanupLimit {
					t.Errorf("it took %s to end", took)
				}
				job.awaitGone(t)
				tr.awaitNothing(t)
				checkDeathTold(t, got)
			})
		}
	}
}

// checkDeathTold: the report has all rows. The rows after the death name the process and how it died.
func checkDeathTold(t *testing.T, got outcome) {
	t.Helper()
	var r result.Report
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || got.code != exitInvalid {
		t.Fatalf("exit %d, %v\n%s", got.code, err, got.stderr)
	}
	if len(r.Results) != len(xdpRows) {
		t.Errorf("got %d rows, want %d", len(r.Results), len(xdpRows))
	}
	told := 0
	for _, res := range r.Results {
		if strings.Contains(res.Reason, "died: signal: killed") {
			told++
		}
	}
	if told == 0 {
		t.Errorf("no row tells of the death: %s", got.stdout)
	}
}
