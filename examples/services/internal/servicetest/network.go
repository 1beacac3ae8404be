// Package servicetest runs an example in the tests of the example: over kernel TCP and over datxdp, each end in a
// process of its own. As root the ends are in two network namespaces, and datxdp runs over AF_XDP. Otherwise it runs
// over UDP between two addresses of loopback.
package servicetest

import (
	"os"
	"os/exec"
	"testing"
)

// Network is hosts that are connected.
type Network struct {
	Name  string
	Hosts []Host
}

// Host is one end of a network.
type Host struct {
	Addr  string
	Flags []string // that make an example use the network
	start func(*exec.Cmd) error
}

// Each runs a test on every network of two hosts that this process may use, one after the other.
func Each(t *testing.T, f func(*testing.T, Network)) {
	t.Helper()
	for _, n := range networks(t) {
		t.Run(n.Name, func(t *testing.T) { f(t, n) })
	}
}

func networks(t *testing.T) []Network {
	t.Helper()
	if os.Geteuid() == 0 {
		return labs(t)
	}
	t.Log("not over AF_XDP: needs root")
	tcp, udp := Network{Name: "tcp"}, Network{Name: "udp"}
	for _, addr := range []string{"127.79.0.1", "127.79.0.2"} {
		tcp.Hosts = append(tcp.Hosts, Host{addr, []string{"--tcp"}, (*exec.Cmd).Start})
		udp.Hosts = append(udp.Hosts, Host{addr, []string{"--ia", "udp:" + addr}, (*exec.Cmd).Start})
	}
	return []Network{tcp, udp}
}
