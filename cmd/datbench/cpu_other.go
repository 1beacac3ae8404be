//go:build !linux

package main

import "errors"

func ownCPUs() (*cpuList, error) { return nil, errors.New("threads are pinned on Linux only") }

func goRealtime() (release func(), err error) {
	return nil, errors.New("--realtime: threads have real-time priority on Linux only")
}

func pin(cpuList) (release func(), err error) { return func() {}, nil }
