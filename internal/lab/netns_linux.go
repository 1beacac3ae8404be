package lab

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

// Do runs fn inside the namespace of one end. It runs on the caller's goroutine, locked to a thread
// that is put back afterwards, also when fn panics or ends the goroutine. Sockets that fn opens
// belong to the namespace for good; goroutines that it starts run outside.
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

// newNamespace makes a network namespace that only the returned handle keeps alive.
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

// refuseOwn keeps a lab out of the namespace that the caller works in.
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

// enter locks the goroutine to its thread and moves the thread with change. The returned function
// moves it back. A thread that cannot be moved back stays locked, so that it dies with the
// goroutine and serves no other.
func enter(change func() error) (back func() error, err error) {
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
