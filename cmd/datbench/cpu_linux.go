package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ownCPUs are those that this thread may run on.
//
// System calls: sched_getaffinity.
func ownCPUs() (*cpuList, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	l := &cpuList{}
	for n := range maxCPU + 1 {
		if set.IsSet(n) {
			*l = append(*l, n)
		}
	}
	return l, nil
}

// pin keeps the calling thread, to which the goroutine must be locked, on these CPUs until it is
// released; an empty list leaves it where it is.
//
// System calls: sched_getaffinity, sched_setaffinity.
func (l cpuList) pin() (release func(), err error) {
	if len(l) == 0 {
		return func() {}, nil
	}
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("--cpu: sched_getaffinity: %w", err)
	}
	for _, n := range l {
		set.Set(n)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("--cpu: sched_setaffinity to %s: %w", l.String(), err)
	}
	return func() { _ = unix.SchedSetaffinity(0, &before) }, nil // it was so before
}
