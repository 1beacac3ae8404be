package servicetest

import (
	"os/exec"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/internal/lab/mesh"
)

// labs returns the networks between two namespaces.
func labs(t *testing.T) []Network {
	t.Helper()
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	tcp, xdp := Network{Name: "tcp"}, Network{Name: "xdp"}
	for _, s := range []lab.Side{lab.A, lab.B} {
		start := func(cmd *exec.Cmd) error { return l.Do(s, cmd.Start) }
		tcp.Hosts = append(tcp.Hosts, Host{s.Addr4().String(), []string{"--tcp"}, start})
		xdp.Hosts = append(xdp.Hosts, Host{s.Addr4().String(), []string{"--ia", "xdp:" + lab.Interface}, start})
	}
	return []Network{tcp, xdp}
}

// Meshes returns the networks of several hosts, over TCP and over AF_XDP. They are the same mesh, which a test may
// impair.
func Meshes(t *testing.T, hosts int) ([]Network, *mesh.Mesh) {
	t.Helper()
	labtest.RequireXDP(t)
	m := mesh.New(t, hosts)
	tcp, xdp := Network{Name: "tcp"}, Network{Name: "xdp"}
	for i := range hosts {
		start := func(cmd *exec.Cmd) error { return m.Do(i, cmd.Start) }
		tcp.Hosts = append(tcp.Hosts, Host{m.Addr(i).String(), []string{"--tcp"}, start})
		xdp.Hosts = append(xdp.Hosts, Host{m.Addr(i).String(), []string{"--ia", "xdp:" + lab.Interface}, start})
	}
	return []Network{tcp, xdp}, m
}
