//go:build !linux

package workload

// mapMemory is n bytes of zeros.
func mapMemory(n int) ([]byte, error) { return make([]byte, n), nil }

func unmapMemory([]byte) error { return nil }
