package servicetest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// patience limits the life of a process. No process takes nearly as long.
const patience = 5 * time.Minute

// variable makes a test binary run the example in place of its tests.
const variable = "DATXDP_SERVICE"

// Main runs the tests or, in a process that Host.Start has started, the example. The example must close everything: a
// goroutine of the adapter or of a connection that is left is a failure.
func Main(m *testing.M, main func()) {
	if os.Getenv(variable) == "" {
		os.Exit(m.Run())
	}
	main()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Start starts the example whose test this is, with the flags of the network and args.
func (h Host) Start(t *testing.T, args ...string) *labtest.Process {
	t.Helper()
	p := labtest.NewProcess(t, patience, "/proc/self/exe", append(h.Flags, args...)...)
	p.Cmd.Env = append(os.Environ(), variable+"=1")
	return p.Start(h.start)
}

// Times is a pattern for the line of measure.Requests.
const Times = `\d+ requests, one at a time: p50 [\d.]+[mµn]?s, p99 [\d.]+[mµn]?s\n`
