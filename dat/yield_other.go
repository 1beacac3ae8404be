//go:build !linux

package dat

import "runtime"

// yieldThread lets other goroutines run.
func yieldThread() { runtime.Gosched() }
