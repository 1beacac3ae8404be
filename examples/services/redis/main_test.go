package main

import (
	"testing"

	"github.com/datxdp/datxdp/examples/services/internal/servicetest"
)

func TestMain(m *testing.M) { servicetest.Main(m, main) }

// TestRedis asks from several clients at once. ^C ends the server while a client is connected.
func TestRedis(t *testing.T) {
	requests, size := "5000", "16777216"
	if testing.Short() {
		requests, size = "300", "1000000"
	}
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		server := n.Hosts[0].Start(t).Await("^serving on ")
		to := []string{"--to", n.Hosts[0].Addr + ":7000", "--requests"}
		out := n.Hosts[1].Start(t, append(to, requests, "--size", size)...).Output()
		t.Log(out)
		servicetest.Match(t, out, `GET: `+servicetest.Times+`pipeline: \d+ commands, \d+/s\nlarge value there and back: \d+ bytes: .*\n`)
		client := n.Hosts[1].Start(t, append(to, "10", "--size", "100000000")...).Await("^pipeline: ")
		client.Interrupt()
		server.Interrupt()
		servicetest.Match(t, n.Hosts[1].Start(t, append(to, "1")...).Fails(), `redis: .*(refused|time).*`)
	})
}
