package labtest

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

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
