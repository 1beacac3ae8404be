//go:build !linux

package measure

import (
	"errors"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
)

func OwnCPUs() (*plan.CPUList, error) { return nil, errors.New("threads are pinned on Linux only") }

func GoRealtime() (release func(), err error) {
	return nil, errors.New("--realtime: threads have real-time priority on Linux only")
}

func Pin(plan.CPUList) (release func(), err error) { return func() {}, nil }
