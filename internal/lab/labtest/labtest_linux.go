package labtest

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
)

// New creates a lab that is closed at the end of the test. It skips the test like [RequireRoot].
func New(t testing.TB, o lab.Options) *lab.Lab {
	t.Helper()
	RequireRoot(t)
	l, err := lab.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// RequireRoot skips the test unless it may create namespaces and interfaces.
func RequireRoot(t testing.TB) {
	t.Helper()
	caps, err := effectiveCaps()
	if err != nil {
		t.Fatalf("labtest: capget: %v", err)
	}
	for _, need := range []struct {
		bit  uint
		name string
	}{{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}} {
		if caps&(1<<need.bit) == 0 {
			t.Skipf("needs %s (uid %d): run as root", need.name, unix.Geteuid())
		}
	}
}

// RequireXDP skips the test if it lacks the privilege or the kernel is too old for AF_XDP. If AF_XDP is missing for
// another reason, RequireXDP fails the test, because a skip would hide a fault.
func RequireXDP(t testing.TB) {
	t.Helper()
	RequireRoot(t)
	requireKernel(t, 5, 11, "for datxdp over AF_XDP")
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("labtest: this kernel has no AF_XDP for root (CONFIG_XDP_SOCKETS): %v", err)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatalf("labtest: close AF_XDP socket: %v", err)
	}
}

func effectiveCaps() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, err
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective), nil
}
