package main

import (
	"fmt"
	"testing"

	"github.com/datxdp/datxdp/examples/services/internal/servicetest"
)

func TestMain(m *testing.M) { servicetest.Main(m, main) }

// TestHTTP asks with every version of HTTP, with and without TLS. The server keeps running until ^C.
func TestHTTP(t *testing.T) {
	requests, bytes := "5000", 64<<20
	if testing.Short() {
		requests, bytes = "200", 1<<20
	}
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		for _, secure := range []bool{false, true} {
			var tls []string
			if secure {
				tls = []string{"--tls", t.TempDir()}
			}
			server := n.Hosts[0].Start(t, tls...).Await("^serving on ")
			for version, name := range map[string]string{"1": "HTTP/1.1", "2": "HTTP/2.0"} {
				c := n.Hosts[1].Start(t, append(tls, "--to", n.Hosts[0].Addr+":7000", "--http", version,
					"--requests", requests, "--bytes", fmt.Sprint(bytes))...)
				out := c.Output()
				t.Logf("tls %v, %s", secure, out)
				servicetest.Match(t, out, fmt.Sprintf(`hello from %s\n%sdownloaded %d bytes: .*\nuploaded %[3]d bytes: .*\n`,
					name, servicetest.Times, bytes))
			}
			server.Interrupt()
		}
	})
}

// TestInterrupt: ^C ends a client and a server in the middle of their work.
func TestInterrupt(t *testing.T) {
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		server := n.Hosts[0].Start(t).Await("^serving on ")
		client := n.Hosts[1].Start(t, "--to", n.Hosts[0].Addr+":7000", "--requests", "1000000000").Await("^hello from ")
		client.Interrupt()
		server.Interrupt()
	})
}

// TestNoServer: a client of a host without a server fails with one line.
func TestNoServer(t *testing.T) {
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		c := n.Hosts[1].Start(t, "--to", n.Hosts[0].Addr+":7000")
		servicetest.Match(t, c.Fails(), `http: .*connection (refused|reset).*|http: .*time.*`)
	})
}
