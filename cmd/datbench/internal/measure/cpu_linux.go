package measure

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
)

// OwnCPUs returns the CPUs on which this thread may run.
//
// System calls: sched_getaffinity.
func OwnCPUs() (*plan.CPUList, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	l := &plan.CPUList{}
	for n := range plan.MaxCPU + 1 {
		if set.IsSet(n) {
			*l = append(*l, n)
		}
	}
	return l, nil
}

// GoRealtime gives the calling thread real-time priority (sched(7), SCHED_RR) until the function release is called.
// The calling goroutine must be locked to its thread.
//
// The class is not SCHED_FIFO: a goroutine of the runtime that spins on the thread without yielding, as the background
// sweeper may (golang/go#76353), would then keep other real-time threads from the processor for ever.
//
// System calls: sched_getattr, sched_setattr.
func GoRealtime() (release func(), err error) {
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return nil, fmt.Errorf("--realtime: sched_getattr: %w", err)
	}
	first := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	if err := unix.SchedSetAttr(0, first, 0); err != nil {
		return nil, fmt.Errorf("--realtime: sched_setattr to SCHED_RR: %w; run as root or with CAP_SYS_NICE, or give --realtime=false", err)
	}
	return func() { _ = unix.SchedSetAttr(0, before, 0) }, nil // restores a value that the kernel had accepted
}

// Pin restricts the calling thread to the CPUs of l until the function release is called. An empty list changes
// nothing. The calling goroutine must be locked to its thread.
//
// System calls: sched_getaffinity, sched_setaffinity.
func Pin(l plan.CPUList) (release func(), err error) {
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
	return func() { _ = unix.SchedSetaffinity(0, &before) }, nil // restores a value that the kernel had accepted
}
