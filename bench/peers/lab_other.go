//go:build !linux

package main

import (
	"errors"
	"time"

	"github.com/datxdp/datxdp/bench/peers/tool"
)

func openSite(int) (*site, error) { return nil, errors.New("needs the network namespaces of Linux") }

func openMesh(int) (*site, func(float64) error, error) {
	return nil, nil, errors.New("needs the network namespaces of Linux")
}

func userTime() time.Duration { return 0 }

func listens(int, tool.Port) bool { return false }
