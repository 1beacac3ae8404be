package examples

import (
	"os"
	"os/exec"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// labs returns a network of two namespaces with AF_XDP, if this process may create them.
func labs(t *testing.T) []network {
	if os.Geteuid() != 0 {
		t.Log("not over AF_XDP: needs root")
		return nil
	}
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	n := network{name: "xdp"}
	for _, s := range []lab.Side{lab.A, lab.B} {
		start := func(cmd *exec.Cmd) error { return l.Do(s, cmd.Start) }
		n.hosts = append(n.hosts, host{"xdp:" + lab.Interface, s.Addr4().String(), start})
	}
	return []network{n}
}
