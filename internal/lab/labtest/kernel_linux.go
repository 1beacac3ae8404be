package labtest

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// RequireMultiBuffer skips the test before Linux 6.6, whose AF_XDP sockets accept no packets of several frames.
func RequireMultiBuffer(t testing.TB) {
	t.Helper()
	requireKernel(t, 6, 6, "for packets of several frames over AF_XDP")
}

// requireKernel skips the test before a version of Linux.
func requireKernel(t testing.TB, major, minor int, what string) {
	t.Helper()
	if m, n := kernelVersion(t); m < major || m == major && n < minor {
		t.Skipf("needs Linux %d.%d or later %s, this is %d.%d", major, minor, what, m, n)
	}
}

// kernelVersion returns the version of the running kernel.
//
// System calls: uname(2).
func kernelVersion(t testing.TB) (major, minor int) {
	t.Helper()
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatalf("labtest: uname: %v", err)
	}
	release := unix.ByteSliceToString(name.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		t.Fatalf("labtest: kernel release %q: %v", release, err)
	}
	return major, minor
}
