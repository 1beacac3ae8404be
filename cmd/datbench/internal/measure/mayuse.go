package measure

import (
	"fmt"
	"slices"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
)

// MayUse returns an error if this process may not run on one of the CPUs.
func MayUse(l plan.CPUList) error {
	if len(l) == 0 {
		return nil
	}
	mine, err := OwnCPUs()
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
