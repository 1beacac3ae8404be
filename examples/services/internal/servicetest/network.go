// Package servicetest runs an example in the tests of the example: over kernel TCP and over datxdp, each end in a
// process of its own. As root the ends are in two network namespaces, and datxdp runs over AF_XDP. Otherwise it runs
// over UDP between two addresses of loopback.
package servicetest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/datxdp/datxdp/internal/lab/labtest"
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

// Serve starts the server of the example on the first host.
func (n Network) Serve(t *testing.T, args ...string) *labtest.Process {
	t.Helper()
	return n.Hosts[0].Start(t, args...).Await("^serving on ")
}

// Ask starts a client of that server on the second host.
func (n Network) Ask(t *testing.T, args ...string) *labtest.Process {
	t.Helper()
	return n.Hosts[1].Start(t, append([]string{"--to", n.Hosts[0].Addr + ":7000"}, args...)...)
}

// Interrupted checks that ^C ends a client and then its server, after the client has printed a line that matches a
// regular expression.
func (n Network) Interrupted(t *testing.T, pattern string, args ...string) {
	t.Helper()
	server := n.Serve(t)
	n.Ask(t, args...).Await(pattern).Interrupt()
	server.Interrupt()
}

// EachTLS runs a test as Each does, without TLS and with TLS. The test gets the flags of both ends.
func EachTLS(t *testing.T, f func(t *testing.T, n Network, flags []string)) {
	t.Helper()
	Each(t, func(t *testing.T, n Network) {
		t.Run("plain", func(t *testing.T) { f(t, n, nil) })
		t.Run("TLS", func(t *testing.T) { f(t, n, []string{"--tls", t.TempDir()}) })
	})
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
