package labtest

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Capabilities for [WithCaps].
const (
	CapNetAdmin uint = unix.CAP_NET_ADMIN
	CapPerfmon  uint = unix.CAP_PERFMON
	CapBPF      uint = unix.CAP_BPF
)

// WithCaps runs fn on a thread that has the given capabilities in effect and no others.
//
// System calls: capget(2), capset(2), before and after fn.
func WithCaps(t testing.TB, caps []uint, fn func()) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var before [2]unix.CapUserData
	if err := unix.Capget(&header, &before[0]); err != nil {
		runtime.UnlockOSThread()
		t.Fatalf("labtest: capget: %v", err)
	}
	reduced := before
	reduced[0].Effective, reduced[1].Effective = 0, 0
	for _, c := range caps {
		reduced[c/32].Effective |= 1 << (c % 32)
	}
	defer func() {
		// A thread that keeps the wrong capabilities stays locked and ends with its goroutine.
		if err := unix.Capset(&header, &before[0]); err != nil {
			t.Fatalf("labtest: capset: %v", err)
		}
		runtime.UnlockOSThread()
	}()
	if err := unix.Capset(&header, &reduced[0]); err != nil {
		t.Fatalf("labtest: capset: %v", err)
	}
	fn()
}
