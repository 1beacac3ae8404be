//go:build !linux

package progress

import "runtime"

// yieldThread lets other goroutines run.
func yieldThread() { runtime.Gosched() }
