package stream

import (
	"errors"
	"math"
	"net"
	"testing"

	"github.com/datxdp/datxdp/dat"
)

// TestAdapterStaysOpen: dials one after the other use one open adapter, until Drain or some time without streams.
func TestAdapterStaysOpen(t *testing.T) {
	const name = "udp:127.93.0.2"
	server := serverAt(t, "udp:127.93.0.1")
	var first *dat.IA
	for range 3 {
		c, err := Dial(t.Context(), name, server)
		check(t, err)
		if first == nil {
			first = c.stack.ia
		}
		if c.stack.ia != first {
			t.Error("Dial opened the adapter again")
		}
		check(t, c.Close())
		if _, err := Dial(t.Context(), name, "127.93.0.1:9"); err == nil {
			t.Error("a dial to a port without a listener has succeeded")
		}
	}
	for _, end := range []struct {
		name string
		run  func()
	}{
		{"Drain", func() { check(t, Drain(t.Context())) }},
		{"time", func() { counts{goroutines: math.MaxInt, files: math.MaxInt, stacks: 1, frames: math.MaxInt}.await(t) }},
	} {
		c, err := Dial(t.Context(), name, server)
		check(t, err)
		check(t, c.Close())
		end.run()
		if isOpen(adapter{name: name}) {
			t.Errorf("the adapter is open after %s", end.name)
		}
	}
}

// TestAdapterClosesAtOnce: an adapter is closed with its last listener or stream if it has had a listener or Drain was called,
// and when another open needs it.
func TestAdapterClosesAtOnce(t *testing.T) {
	const name = "udp:127.93.0.3"
	server := serverAt(t, name)
	c, err := Dial(t.Context(), "udp:127.93.0.4", server)
	check(t, err)
	check(t, c.Close())
	key, _ := newKey(t)
	secure := ListenConfig{Adapter: "udp:127.93.0.4", Security: dat.Security{KeyFile: key}}
	l, err := secure.Listen(t.Context(), 0)
	check(t, err)
	check(t, l.Close())
	if isOpen(adapter{name: secure.Adapter, security: secure.Security}) {
		t.Error("the adapter of a closed listener is open")
	}
	c, err = Dial(t.Context(), "udp:127.93.0.4", server)
	check(t, err)
	check(t, Drain(t.Context()))
	check(t, c.Close())
	if isOpen(adapter{name: "udp:127.93.0.4"}) {
		t.Error("the adapter is open, though Drain was called before its last stream was closed")
	}
}

// isOpen reports whether an adapter is open.
func isOpen(key adapter) bool {
	opening.Lock()
	defer opening.Unlock()
	return stacks[key] != nil
}

// serverAt accepts streams at an adapter, and closes them, until the end of the test. It returns the address.
func serverAt(t *testing.T, adapter string) string {
	l, err := Listen(t.Context(), adapter, 0)
	check(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				return
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		check(t, l.Close())
		<-done
	})
	return l.Addr().String()
}
