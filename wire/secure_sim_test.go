//go:build !race

package wire

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/datxdp/datxdp/wire/internal/seal"
)

// TestSecureScenarios runs a part of the scenarios of TestScenarios in secure mode, half of them with many key updates.
func TestSecureScenarios(t *testing.T) {
	first, n := seedRange(t)
	n = (n + 3) / 4
	var failed atomic.Int32
	t.Run("seed", func(t *testing.T) {
		for seed := first; seed < first+n; seed++ {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				defer func() {
					if t.Failed() {
						failed.Add(1)
						fmt.Printf("secure seed %d failed; again with: DATXDP_SEED=%d go test ./wire -count=1 -run TestSecureScenarios\n", seed, seed)
					}
				}()
				runScenario(t, seed, []*seal.Limits{usual, frequent}[seed%2])
			})
		}
	})
	fmt.Printf("%d secure seeds, %d failures\n", n, failed.Load())
}
