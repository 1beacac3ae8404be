package main

import (
	"fmt"
	"testing"

	"github.com/datxdp/datxdp/examples/services/internal/servicetest"
)

func TestMain(m *testing.M) { servicetest.Main(m, main) }

// TestGRPC calls every method, with and without TLS.
func TestGRPC(t *testing.T) {
	calls, messages := "5000", 10000
	if testing.Short() {
		calls, messages = "200", 500
	}
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		for _, secure := range []bool{false, true} {
			var tls []string
			if secure {
				tls = []string{"--tls", t.TempDir()}
			}
			server := n.Hosts[0].Start(t, tls...).Await("^serving on ")
			c := n.Hosts[1].Start(t, append(tls, "--to", n.Hosts[0].Addr+":7000", "--calls", calls, "--messages", fmt.Sprint(messages))...)
			out := c.Output()
			t.Logf("tls %v\n%s", secure, out)
			servicetest.Match(t, out, fmt.Sprintf(`unary: %s(?:stream: %[1]s)received %d bytes: .*\nsent %[2]d bytes: .*\n`,
				servicetest.Times, messages*4096))
			server.Interrupt()
		}
	})
}

// TestInterrupt: ^C ends a client and a server in the middle of a call.
func TestInterrupt(t *testing.T) {
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		server := n.Hosts[0].Start(t).Await("^serving on ")
		client := n.Hosts[1].Start(t, "--to", n.Hosts[0].Addr+":7000", "--calls", "1", "--messages", "1000000000").Await("^stream: ")
		client.Interrupt()
		server.Interrupt()
	})
}

// TestServerGone: ^C at a server ends the call of a client, which fails with one line.
func TestServerGone(t *testing.T) {
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		server := n.Hosts[0].Start(t).Await("^serving on ")
		client := n.Hosts[1].Start(t, "--to", n.Hosts[0].Addr+":7000", "--calls", "1", "--messages", "1000000000").Await("^stream: ")
		server.Interrupt()
		servicetest.Match(t, client.Fails(), `grpc: rpc error: code = Unavailable .*`)
		c := n.Hosts[1].Start(t, "--to", n.Hosts[0].Addr+":7000")
		servicetest.Match(t, c.Fails(), `grpc: rpc error: code = Unavailable .*(refused|time).*`)
	})
}
