package xdp

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is an open network namespace. All sockets that the device creates after Open are created in this namespace,
// on any thread, because interface indices differ between namespaces.
type namespace struct{ file *os.File }

const threadNamespace = "/proc/thread-self/ns/net"

// currentNamespace opens the namespace of the calling thread.
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

// run runs f in the namespace. Switching to another namespace needs CAP_SYS_ADMIN.
//
// System calls: openat, fstat; setns twice if the thread is in another namespace.
func (n namespace) run(f func() error) (err error) {
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
			runtime.LockOSThread() // this thread stays in the wrong namespace: no other goroutine may use it
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
