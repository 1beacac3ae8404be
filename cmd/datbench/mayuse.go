package main

import (
	"fmt"
	"slices"
)

// mayUse asks whether this process may use them.
func mayUse(l cpuList) error {
	if len(l) == 0 {
		return nil
	}
	mine, err := ownCPUs()
	if err != nil {
		return fmt.Errorf("--cpu: %w", err)
	}
	for _, n := range l {
		if !slices.Contains(*mine, n) {
			return fmt.Errorf("--cpu: %d is not a CPU that this process may use; choose from %s", n, mine.String())
		}
	}
	return nil
}
