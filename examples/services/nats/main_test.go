package main

import (
	"testing"

	"github.com/datxdp/datxdp/examples/services/internal/servicetest"
)

func TestMain(m *testing.M) { servicetest.Main(m, main) }

// TestNATS measures, and sends messages to subscribers. The subscribers are still there when ^C ends the server.
func TestNATS(t *testing.T) {
	requests, messages := "3000", "100000"
	if testing.Short() {
		requests, messages = "200", "5000"
	}
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		server := n.Hosts[0].Start(t).Await("^serving on ")
		to := []string{"--to", n.Hosts[0].Addr + ":7000"}
		out := n.Hosts[1].Start(t, append(to, "--requests", requests, "--messages", messages)...).Output()
		t.Log(out)
		servicetest.Match(t, out, `request: `+servicetest.Times+`stream: \d+ messages, \d+/s\n`)
		client := n.Hosts[1].Start(t, append(to, "--requests", "1", "--messages", "1000000000")...).Await("^request: ")
		client.Interrupt()
		server.Interrupt()
		servicetest.Match(t, n.Hosts[1].Start(t, to...).Fails(), `nats: .*(refused|time|no servers).*`)
	})
}

// TestReconnect: a subscriber outlives its server, and is connected to the next one at that address.
func TestReconnect(t *testing.T) {
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		server := n.Hosts[0].Start(t).Await("^serving on ")
		subscriber := n.Hosts[1].Start(t, "--to", n.Hosts[0].Addr+":7000", "--subscribe", "news").Await("^subscribed to news")
		server.Kill()
		server = n.Hosts[0].Start(t).Await("^serving on ")
		subscriber.Await("^connected again")
		subscriber.Interrupt()
		server.Interrupt()
	})
}
