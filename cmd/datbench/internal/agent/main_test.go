package agent

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
)

// TestMain runs the test binary as an agent if a test has started it as one.
func TestMain(m *testing.M) {
	if os.Getenv("DATBENCH_TEST_AGENT") == "1" {
		if err := New(&workload.Host{}).Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
