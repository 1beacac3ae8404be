package bpf

import "errors"

// Errors of [Attach], matched with errors.Is; the text around them names the object.
var (
	// ErrForeign: the interface has an XDP program that is not ours. It is left alone.
	ErrForeign = errors.New("interface has a foreign XDP program")
	// ErrBusy: the interface is steered already, by another process or by this one.
	ErrBusy = errors.New("interface is busy: it has a datxdp program")
	// ErrPrivilege: the process may not load or attach programs.
	ErrPrivilege = errors.New("needs root or CAP_BPF and CAP_NET_ADMIN, before Linux 5.18 CAP_PERFMON too")
	// ErrUnsupported: this operating system, kernel or driver lacks what was asked for.
	ErrUnsupported = errors.New("XDP is not supported here")
	// ErrRefused: the driver takes no program as the interface is set up now, by its MTU or its queues.
	ErrRefused = errors.New("the driver refuses the program")
	// ErrClosed: the Steer has been closed.
	ErrClosed = errors.New("steer is closed")
)
