//go:build !linux

package job

import (
	"context"
	"runtime"

	"github.com/datxdp/datxdp/internal/result"
)

func (j *Job) overXDP(context.Context) (*result.Report, error) {
	return nil, &UnavailableError{"no AF_XDP on " + runtime.GOOS, "use Linux"}
}
