package main

import (
	"fmt"
	"testing"

	"github.com/datxdp/datxdp/examples/services/internal/servicetest"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

func TestMain(m *testing.M) { servicetest.Main(m, main) }

// TestGRPC calls every method, with and without TLS.
func TestGRPC(t *testing.T) {
	calls, messages := "5000", 10000
	if testing.Short() {
		calls, messages = "200", 500
	}
	servicetest.EachTLS(t, func(t *testing.T, n servicetest.Network, tls []string) {
		server := n.Serve(t, tls...)
		out := n.Ask(t, append(tls, "--calls", calls, "--messages", fmt.Sprint(messages))...).Output()
		t.Log(out)
		labtest.Match(t, out, fmt.Sprintf(`unary: %s(?:stream: %[1]s)received %d bytes: .*\nsent %[2]d bytes: .*\n`,
			servicetest.Times, messages*4096))
		server.Interrupt()
	})
}

// TestInterrupt: ^C ends a client and a server in the middle of a call.
func TestInterrupt(t *testing.T) {
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		n.Interrupted(t, "^stream: ", "--calls", "1", "--messages", "1000000000")
	})
}

// TestServerGone: ^C at a server ends the call of a client, which fails with one line.
func TestServerGone(t *testing.T) {
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		server := n.Serve(t)
		client := n.Ask(t, "--calls", "1", "--messages", "1000000000").Await("^stream: ")
		server.Interrupt()
		labtest.Match(t, client.Fails(), `grpc: rpc error: code = Unavailable .*`)
		labtest.Match(t, n.Ask(t).Fails(), `grpc: rpc error: code = Unavailable .*(refused|time).*`)
	})
}
