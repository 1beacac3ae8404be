//go:build !linux

package main

import (
	"context"
	"runtime"

	"github.com/datxdp/datxdp/internal/result"
)

func (j *job) overXDP(context.Context) (*result.Report, error) {
	return nil, &cannotError{"no AF_XDP on " + runtime.GOOS, "use Linux"}
}
