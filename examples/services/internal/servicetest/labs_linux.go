package servicetest

import (
	"os/exec"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// labs returns the networks between two namespaces.
func labs(t *testing.T) []Network {
	t.Helper()
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	tcp, xdp := Network{Name: "tcp"}, Network{Name: "xdp"}
	for _, s := range []lab.Side{lab.A, lab.B} {
		start := func(cmd *exec.Cmd) error { return l.Do(s, cmd.Start) }
		tcp.Hosts[s] = Host{s.Addr4().String(), []string{"--tcp"}, start}
		xdp.Hosts[s] = Host{s.Addr4().String(), []string{"--ia", "xdp:" + lab.Interface}, start}
	}
	return []Network{tcp, xdp}
}
