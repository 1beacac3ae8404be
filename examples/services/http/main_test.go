package main

import (
	"fmt"
	"testing"

	"github.com/datxdp/datxdp/examples/services/internal/servicetest"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

func TestMain(m *testing.M) { servicetest.Main(m, main) }

// TestHTTP asks with every version of HTTP, with and without TLS. The server keeps running until ^C.
func TestHTTP(t *testing.T) {
	requests, bytes := "5000", 64<<20
	if testing.Short() {
		requests, bytes = "200", 1<<20
	}
	servicetest.EachTLS(t, func(t *testing.T, n servicetest.Network, tls []string) {
		server := n.Serve(t, tls...)
		for version, name := range map[string]string{"1": "HTTP/1.1", "2": "HTTP/2.0"} {
			out := n.Ask(t, append(tls, "--http", version, "--requests", requests, "--bytes", fmt.Sprint(bytes))...).Output()
			t.Log(out)
			labtest.Match(t, out, fmt.Sprintf(`hello from %s\n%sdownloaded %d bytes: .*\nuploaded %[3]d bytes: .*\n`,
				name, servicetest.Times, bytes))
		}
		server.Interrupt()
	})
}

// TestInterrupt: ^C ends a client and a server in the middle of their work.
func TestInterrupt(t *testing.T) {
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		n.Interrupted(t, "^hello from ", "--requests", "1000000000")
	})
}

// TestNoServer: a client of a host without a server fails with one line.
func TestNoServer(t *testing.T) {
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		labtest.Match(t, n.Ask(t).Fails(), `http: .*connection (refused|reset).*|http: .*time.*`)
	})
}
