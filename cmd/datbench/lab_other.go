//go:build !linux

package main

import (
	"context"
	"os"
	"runtime"
)

func (j *job) overXDP(context.Context, *os.File) (*Report, error) {
	return nil, &cannotError{"no AF_XDP on " + runtime.GOOS, "use Linux"}
}
