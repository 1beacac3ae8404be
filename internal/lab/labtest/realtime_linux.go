package labtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// realTimeLimit is the time that a test under RealTime may take.
const realTimeLimit = 20 * time.Second

// Starved is a time that a thread of normal priority does not have to wait for its processor, if threads with a
// real-time priority let it run. If they do not, the kernel gives it 50 ms after 950 ms (sched_rt_runtime_us).
const Starved = 500 * time.Millisecond

// RealTime runs f in a process of its own, whose threads have a real-time priority (SCHED_FIFO) and share one processor.
// There f must not call t.Run. Only the functions that f passes to OtherPriority run at normal priority.
func RealTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	RequireRoot(t)
	const name = "DATXDP_REALTIME"
	if os.Getenv(name) == t.Name() {
		switch err := becomeRealTime(); {
		case errors.Is(err, unix.EPERM):
			t.Skip("needs CAP_SYS_NICE:", err)
		case err != nil:
			t.Fatal(err)
		}
		f(t)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), realTimeLimit)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), name+"="+t.Name(), "GOMAXPROCS=2", "GOTRACEBACK=all")
	if said, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}

// becomeRealTime gives all threads of the process one processor and a real-time priority. Further threads inherit both.
// It stops the garbage collector, whose threads can wait for each other for ever at such a priority (golang/go#76353).
func becomeRealTime() error {
	debug.SetGCPercent(-1)
	var may, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	for cpu := range len(may) * 64 {
		if may.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	return eachThread(func(tid int) error {
		return errors.Join(unix.SchedSetaffinity(tid, &one), setPolicy(tid, unix.SCHED_FIFO, 1))
	})
}

// eachThread calls f for the threads of the process until it has found no new one.
func eachThread(f func(tid int) error) error {
	seen := make(map[string]bool)
	for added := true; added; {
		added = false
		all, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, e := range all {
			if seen[e.Name()] {
				continue
			}
			seen[e.Name()], added = true, true
			tid, _ := strconv.Atoi(e.Name()) // the name of a directory there is a number
			if err := f(tid); err != nil {
				return err
			}
		}
	}
	return nil
}

func setPolicy(tid int, policy, priority uint32) error {
	a := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: priority}
	if err := unix.SchedSetAttr(tid, &a, 0); err != nil {
		return fmt.Errorf("sched_setattr: %w", err)
	}
	return nil
}

// OtherPriority runs f on a thread of its own with the normal priority. The thread ends with f.
func OtherPriority(t *testing.T, f func()) {
	go func() {
		runtime.LockOSThread() // for ever, so that the thread ends
		if err := setPolicy(unix.Gettid(), unix.SCHED_NORMAL, 0); err != nil {
			t.Error(err)
		}
		f()
	}()
}
