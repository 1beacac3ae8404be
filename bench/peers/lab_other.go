//go:build !linux

package main

import (
	"errors"

	"github.com/datxdp/datxdp/bench/peers/tool"
)

func openSite(int) (*site, error) { return nil, errors.New("needs the network namespaces of Linux") }

func listens(int, tool.Port) bool { return false }
