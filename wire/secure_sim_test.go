//go:build !race

package wire

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/seal"
)

// hasty starts a key update as often as the rules for updates allow.
var hasty = &seal.Limits{Packets: 1 << 20, Update: 1, Age: time.Hour, Failures: 1 << 20}

// TestSecureScenarios runs a part of the scenarios of TestScenarios in secure mode, half of them with many key updates.
func TestSecureScenarios(t *testing.T) {
	first, n := seedRange(t)
	n = (n + 3) / 4
	var failed, updated atomic.Int32
	var opened atomic.Int64
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
				w := runScenario(t, seed, []*seal.Limits{usual, hasty}[seed%2]).w
				opened.Add(int64(w.model.numOpen))
				if w.model.numKeys > 4*w.noise.model.opened { // each message of a handshake makes two keys
					updated.Add(1)
				}
			})
		}
	})
	fmt.Printf("%d secure seeds, %d failures\n", n, failed.Load())
	t.Logf("%d packets were opened, keys changed often in %d of %d scenarios", opened.Load(), updated.Load(), n)
	if k := uint64(updated.Load()); n >= defaultSeeds/4 && k < n/8 {
		t.Errorf("keys changed often in %d of %d scenarios", k, n)
	}
}
