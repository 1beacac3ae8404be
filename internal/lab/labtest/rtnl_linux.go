package labtest

import (
	"errors"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// HoldRTNL makes the kernel hold RTNL, its lock of network settings, until the returned function is called or the test
// ends. Meanwhile all requests about network settings wait, also those of other processes and namespaces. HoldRTNL skips
// the test if the kernel has no userfaultfd.
//
// The kernel holds RTNL while it copies the argument of an ethtool request. Here a page of the argument is missing, and
// the test supplies it when it releases the lock.
func HoldRTNL(t testing.TB) (release func()) {
	t.Helper()
	RequireRoot(t)
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	faults, err := openFaults(mem[page:])
	if err != nil {
		_ = unix.Munmap(mem)
		t.Skip("userfaultfd:", err)
	}
	over := make(chan error, 1)
	go func() { over <- getFeatures("lo", mem[page-4:]) }()
	var event [64]byte
	if _, err := unix.Read(faults, event[:]); err != nil { // returns when the kernel misses the page
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		err := zeroPage(faults, mem[page:])
		_ = unix.Close(faults) // ends the request in any case
		if err := errors.Join(err, <-over); err != nil {
			t.Error("ethtool request:", err)
		}
		_ = unix.Munmap(mem)
	})
	t.Cleanup(release)
	return release
}
