//go:build !linux

package measure

// threadStats returns nothing: only Linux counts run delays.
func threadStats() map[string]threadStat { return nil }
