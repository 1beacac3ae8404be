//go:build !linux

package main

import (
	"context"
	"runtime"
)

func (j *job) overXDP(context.Context, handed) (*Report, error) {
	return nil, &cannotError{"no AF_XDP on " + runtime.GOOS, "use Linux"}
}
