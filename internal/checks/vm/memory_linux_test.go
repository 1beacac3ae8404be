package vm

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
)

// memoryTries is the number of measurements of each program. The test compares the smallest ones, because other load
// of the host only adds time.
const memoryTries = 2

// memoryWaiter runs dtest -W, a C program that waits by reading its memory, and prints how long its round trip takes
// compared with that of sends. It fails only if dtest does not pass.
func memoryWaiter(t *testing.T, n *network) {
	if _, err := os.Stat(library); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this host cannot build the provider library: it needs gcc and libdapl-dev")
	}
	m := n.machines[0]
	n.install(t, "libdatxdp.so")
	out := n.ssh(t, m, root+"/tools/memory-guest.sh", fmt.Sprintf("bash -s -- %d", memoryTries))
	best := map[string]float64{"send": math.Inf(1), "dtest": math.Inf(1)}
	for line := range strings.Lines(out) {
		var program string
		var trip float64
		if _, err := fmt.Sscan(line, &program, &trip); err == nil {
			best[program] = min(best[program], trip)
		}
	}
	if math.IsInf(best["send"]+best["dtest"], 0) {
		t.Fatalf("a program was not measured:\n%s", out)
	}
	t.Logf("round trip in one machine: send %.0f us, dtest -W %.0f us, ratio %.1f", best["send"], best["dtest"], best["dtest"]/best["send"])
}
