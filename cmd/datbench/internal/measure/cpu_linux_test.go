package measure

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestPin: Pin moves a thread to the CPUs, and the function release restores the thread's CPUs.
func TestPin(t *testing.T) {
	before, err := OwnCPUs()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // the locked thread ends with this goroutine
		defer close(done)
		runtime.LockOSThread()
		release, err := Pin(plan.CPUList{(*before)[0]})
		if err != nil {
			t.Error(err)
			return
		}
		if now, err := OwnCPUs(); err != nil || now.String() != strconv.Itoa((*before)[0]) {
			t.Errorf("pinned to %v, %v", now, err)
		}
		release()
		if now, err := OwnCPUs(); err != nil || now.String() != before.String() {
			t.Errorf("released to %v, %v, want %v", now, err, before)
		}
	}()
	<-done
}

// TestRealtime: the thread has real-time priority until release is called. Without the privilege, the error names the
// remedy.
func TestRealtime(t *testing.T) {
	labtest.RequireRoot(t)
	policy := func() uint32 {
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return attr.Policy
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := policy()
	release, err := GoRealtime()
	if err != nil {
		t.Fatal(err)
	}
	during := policy()
	release()
	if after := policy(); during != unix.SCHED_RR || after != before {
		t.Errorf("policies %d, %d, %d", before, during, after)
	}
	labtest.WithCaps(t, nil, func() {
		if _, err := GoRealtime(); err == nil || !strings.Contains(err.Error(), "CAP_SYS_NICE") {
			t.Errorf("without privilege: %v", err)
		}
	})
}
