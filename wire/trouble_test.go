//go:build !race

package wire

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/seal"
)

// The bounds of TestAfterTrouble. An operation that is outstanding when the trouble ends completes within mostOutstanding.
// An operation that begins later takes at most mostFactor times as long as on an idle network, plus mostExtra.
const (
	mostOutstanding = 250 * time.Millisecond
	mostFactor      = 3
	mostExtra       = 10 * time.Millisecond
)

// troubleSeeds is the number of scenarios of TestAfterTrouble that go test runs. make sim runs more.
const troubleSeeds = 2000

// TestAfterTrouble judges the moment after trouble, in random scenarios in virtual time. One connection carries the
// traffic of a stream: one request at a time, answers of various sizes, idle gaps, some bulk. Meanwhile there is trouble
// (see drawTrouble): an end is stopped, packets get lost, strangers send floods of Connects, the path changes its delay or
// drops large packets. Then both ends run and the path is whole again. Whatever the trouble was, the connection must then
// work at once, within the bounds above.
//
// An engine is polled only when a packet has arrived, when its deadline has passed or when its consumer has posted. So
// nothing happens too early by chance, unlike in TestScenarios. A seed always generates the same scenario. DATXDP_SEEDS
// and DATXDP_SEED are those of TestScenarios.
func TestAfterTrouble(t *testing.T) { searchTrouble(t, "TestAfterTrouble", "", troubleSeeds, nil) }

// TestSecureAfterTrouble is TestAfterTrouble in secure mode, with a quarter of the seeds.
func TestSecureAfterTrouble(t *testing.T) {
	searchTrouble(t, "TestSecureAfterTrouble", "secure ", troubleSeeds/4, usual)
}

func searchTrouble(t *testing.T, test, mode string, usually uint64, keys *seal.Limits) {
	first, n := seedRange(t)
	switch {
	case os.Getenv("DATXDP_SEED") != "":
	case os.Getenv("DATXDP_SEEDS") == "":
		n = usually
	case keys != nil:
		n = (n + 3) / 4
	}
	var failed atomic.Int32
	t.Run("seed", func(t *testing.T) {
		const group = 64 // seeds of a subtest
		for from := first; from < first+n; from += group {
			t.Run(strconv.FormatUint(from, 10), func(t *testing.T) {
				t.Parallel()
				for seed := from; seed < min(from+group, first+n); seed++ {
					if err := runTrouble(t, seed, keys); err != nil {
						failed.Add(1)
						t.Error(err)
						fmt.Printf("%sseed %d failed; again with: DATXDP_SEED=%d go test ./wire -count=1 -run '^%s$'\n", mode, seed, seed, test)
					}
				}
			})
		}
	})
	fmt.Printf("%d %sseeds of trouble, %d failures\n", n, mode, failed.Load())
}

// runTrouble runs the scenario of a seed. It returns an error if the connection breaks a bound.
func runTrouble(t *testing.T, seed uint64, keys *seal.Limits) (err error) {
	x := newTrouble(t, seed, keys)
	defer func() {
		if p := recover(); p != nil && err == nil {
			if f, ok := p.(troubleFailure); ok {
				err = f.error
				return
			}
			panic(p)
		}
	}()
	x.calibrate()
	x.connect()
	x.suffer()
	x.recover()
	return nil
}

// recover judges the time after the trouble.
func (x *trouble) recover() {
	over := x.now()
	if x.op != nil || x.ca.State() != Established {
		x.runUntil("the outstanding operation", over+int64(mostOutstanding), func() bool { return x.op == nil && x.connected() })
	}
	for range 12 {
		x.rest(pick(x.r, 0, 0, 100*time.Microsecond, 3*time.Millisecond, 30*time.Millisecond, 400*time.Millisecond, 2*time.Second))
		op := x.drawOp()
		most := mostFactor*op.unloaded + mostExtra
		x.begin(op)
		x.runUntil(fmt.Sprintf("an operation (%v)", op), x.now()+int64(most), func() bool { return x.op == nil })
	}
}
