package main

import (
	"testing"

	"github.com/datxdp/datxdp/examples/services/internal/servicetest"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

func TestMain(m *testing.M) { servicetest.Main(m, main) }

// TestNATS measures, and sends messages to subscribers. The subscribers are still there when ^C ends the server.
func TestNATS(t *testing.T) {
	requests, messages := "3000", "100000"
	if testing.Short() {
		requests, messages = "200", "5000"
	}
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		server := n.Serve(t)
		out := n.Ask(t, "--requests", requests, "--messages", messages).Output()
		t.Log(out)
		labtest.Match(t, out, `request: `+servicetest.Times+`stream: \d+ messages, \d+/s\n`)
		if n.Name == "tcp" { // one process at a time can use an AF_XDP interface
			subscriber := n.Ask(t, "--subscribe", "news").Await("^subscribed to news")
			labtest.Match(t, n.Ask(t, "--publish", "news", "\x1b[31mred").Output(), "")
			subscriber.Await(`^"\\x1b\[31mred"`).Interrupt() // quoted: it may control the terminal
		}
		client := n.Ask(t, "--requests", "1", "--messages", "1000000000").Await("^request: ")
		client.Interrupt()
		server.Interrupt()
		labtest.Match(t, n.Ask(t).Fails(), `nats: .*(refused|time|no servers).*`)
	})
}

// TestReconnect: a subscriber outlives its server, and is connected to the next one at that address.
func TestReconnect(t *testing.T) {
	servicetest.Each(t, func(t *testing.T, n servicetest.Network) {
		server := n.Serve(t)
		subscriber := n.Ask(t, "--subscribe", "news").Await("^subscribed to news")
		server.Kill()
		server = n.Serve(t)
		subscriber.Await("^connected again")
		subscriber.Interrupt()
		server.Interrupt()
	})
}
