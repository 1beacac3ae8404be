package lab

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

// Do runs fn in the namespace of one end, on the caller's goroutine. It restores the thread's namespace afterwards,
// even if fn panics or ends the goroutine. Sockets that fn opens stay in the namespace of the end. Goroutines that fn
// starts do not run in it.
//
// System calls: setns(2) before and after fn.
func (l *Lab) Do(s Side, fn func() error) (err error) {
	back, err := enter(func() error { return netns.Set(l.ends[s].ns) })
	if err != nil {
		return fmt.Errorf("lab: enter namespace %s: %w", s, err)
	}
	defer func() { err = errors.Join(err, back()) }()
	return fn()
}

// newNamespace creates a network namespace that only the returned handle keeps alive.
func newNamespace() (ns netns.NsHandle, err error) {
	back, err := enter(func() (err error) {
		ns, err = netns.New()
		return err
	})
	if err != nil {
		return netns.None(), fmt.Errorf("lab: new network namespace: %w", err)
	}
	return ns, back()
}

func namespaceOf(pid int) func() (netns.NsHandle, error) {
	return func() (netns.NsHandle, error) {
		ns, err := netns.GetFromPid(pid)
		if err != nil {
			return netns.None(), fmt.Errorf("lab: network namespace of process %d: %w", pid, err)
		}
		if err := refuseOwn(ns); err != nil {
			return netns.None(), errors.Join(fmt.Errorf("lab: process %d: %w", pid, err), ns.Close())
		}
		return ns, nil
	}
}

// refuseOwn returns an error if ns is the namespace of the caller.
func refuseOwn(ns netns.NsHandle) error {
	home, err := netns.Get()
	if err != nil {
		return err
	}
	defer home.Close()
	if ns.Equal(home) {
		return errors.New("it is in this process's own network namespace")
	}
	return nil
}

// enter locks the goroutine to its thread and moves the thread to another namespace by calling change. The caller must
// call restore, which moves the thread back. If restore fails, the thread stays locked, so that it ends with the
// goroutine and runs no other goroutine.
func enter(change func() error) (restore func() error, err error) {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	if err := change(); err != nil {
		runtime.UnlockOSThread()
		return nil, errors.Join(err, home.Close())
	}
	return func() error {
		if err := netns.Set(home); err != nil {
			return errors.Join(fmt.Errorf("lab: put thread back into its namespace: %w", err), home.Close())
		}
		runtime.UnlockOSThread()
		return home.Close()
	}, nil
}
