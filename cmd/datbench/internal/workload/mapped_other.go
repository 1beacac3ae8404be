//go:build !linux

package workload

// mapMemory returns n zero bytes.
func mapMemory(n int) ([]byte, error) { return make([]byte, n), nil }

func unmapMemory([]byte) error { return nil }
