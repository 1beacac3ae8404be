package main

import (
	"testing"

	"github.com/datxdp/datxdp/examples/services/internal/servicetest"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

func TestMain(m *testing.M) { servicetest.Main(m, main) }

// TestRedis asks from several clients at once. ^C ends the server while a client is connected.
func TestRedis(t *testing.T) {
	requests, size := "5000", "16777216"
	if testing.Short() {
		requests, size = "300", "1000000"
	}
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		server := n.Serve(t)
		out := n.Ask(t, "--requests", requests, "--size", size).Output()
		t.Log(out)
		labtest.Match(t, out, `GET: `+servicetest.Times+`pipeline: \d+ commands, \d+/s\nlarge value there and back: \d+ bytes: .*\n`)
		client := n.Ask(t, "--requests", "10", "--size", "100000000").Await("^pipeline: ")
		client.Interrupt()
		server.Interrupt()
		labtest.Match(t, n.Ask(t, "--requests", "1").Fails(), `redis: .*(refused|time).*`)
	})
}
