//go:build !linux

package main

import "runtime"

// examine has little to say where there is no AF_XDP.
func examine([]string, uint16) ([]check, error) {
	return []check{verdict("AF_XDP", false, "not on "+runtime.GOOS, "use Linux; udp: works here")}, nil
}
