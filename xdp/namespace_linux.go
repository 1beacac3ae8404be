package xdp

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace that is held open: what makes a socket later, on whatever thread, has to make it
// there, since the index of an interface means another one elsewhere.
type namespace struct{ file *os.File }

const threadNamespace = "/proc/thread-self/ns/net"

// currentNamespace is that of the calling thread.
func currentNamespace() (namespace, error) {
	f, err := os.Open(threadNamespace)
	if err != nil {
		return namespace{}, fmt.Errorf("xdp: network namespace: %w", err)
	}
	return namespace{f}, nil
}

func (n namespace) close() error {
	if n.file == nil {
		return nil
	}
	return n.file.Close()
}

// do runs f in the namespace. Entering another one than the thread is in needs CAP_SYS_ADMIN.
//
// System calls: openat, fstat; setns twice where the thread is elsewhere.
func (n namespace) do(f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, err := currentNamespace()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, here.close()) }()
	same, err := n.same(here)
	if err != nil {
		return fmt.Errorf("xdp: network namespace: %w", err)
	}
	if same {
		return f()
	}
	if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("xdp: enter the interface's network namespace: %w", err)
	}
	defer func() {
		if back := unix.Setns(int(here.file.Fd()), unix.CLONE_NEWNET); back != nil {
			runtime.LockOSThread() // no other goroutine gets this thread
			err = errors.Join(err, fmt.Errorf("xdp: leave the interface's network namespace: %w", back))
		}
	}()
	return f()
}

func (n namespace) same(o namespace) (bool, error) {
	mine, err := n.file.Stat()
	if err != nil {
		return false, err
	}
	other, err := o.file.Stat()
	return err == nil && os.SameFile(mine, other), err
}
