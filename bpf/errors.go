package bpf

import "errors"

// Errors of [Attach], for errors.Is. The text around them names the interface.
var (
	// ErrForeign: the interface has an XDP program of another owner. It is left in place.
	ErrForeign = errors.New("interface has a foreign XDP program")
	// ErrBusy: the interface has a datxdp program already, of this or another process.
	ErrBusy = errors.New("interface is busy: it has a datxdp program")
	// ErrPrivilege: the process may not load or attach programs.
	ErrPrivilege = errors.New("needs root or CAP_BPF and CAP_NET_ADMIN, before Linux 5.18 CAP_PERFMON too")
	// ErrUnsupported: the operating system, kernel or driver lacks a required feature.
	ErrUnsupported = errors.New("XDP is not supported here")
	// ErrRefused: the driver accepts no program with the current MTU or number of queues.
	ErrRefused = errors.New("the driver refuses the program")
	// ErrClosed: the Steer has been closed.
	ErrClosed = errors.New("steer is closed")
	// ErrTaken: another lease of the interface listens on the qualifier.
	ErrTaken = errors.New("the qualifier is taken")
)
