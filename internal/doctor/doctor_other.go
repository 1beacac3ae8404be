//go:build !linux

package doctor

import (
	"context"
	"runtime"
)

// facts is empty: nothing is known on this operating system.
type facts struct{}

func (*exam) learn() {}

func (*exam) expected() string { return "no" }

func (*exam) reaches(check) bool { return true }

func candidates(Target) []string { return nil }

func table() []check {
	return []check{{"kernel", "the operating system and its version", scopeHost, true, kernel}}
}

func kernel(context.Context, *exam) []Finding {
	return failure(runtime.GOOS+" has no AF_XDP", "AF_XDP is a part of Linux.", "use Linux 5.11 or newer, or kernel UDP: --ia udp:ADDRESS", "")
}
