//go:build datxdpdebug

package wire

import (
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

// A debug build must panic if a goroutine calls an engine that it does not own, and only then.
func TestCallWithoutOwnership(t *testing.T) {
	w := newWorld(t, simlink.Config{}, 1)
	e := w.nodes[0].eng
	calls := map[string]func(){
		"Poll":        func() { e.Poll(e.now) },
		"Next":        func() { e.Next() },
		"Kick":        func() { e.Kick(w.nodes[0].host.NewConn(ConnConfig{})) },
		"Stats":       func() { e.Stats() },
		"Connections": func() { e.Connections() },
		"Inspect":     func() { e.Inspect(e.now, 0, nil) },
		"Disown":      func() { e.Disown() },
	}
	for name, call := range calls {
		if name != "Disown" && panics(call) {
			t.Errorf("%s panics on an engine that nobody ever owned", name)
		}
	}
	const role = 1
	if !e.TryOwn(role) || e.TryOwn(role) {
		t.Fatal("the token is not taken once")
	}
	for name, call := range calls {
		if name != "Disown" && panics(call) {
			t.Errorf("%s panics in the goroutine of the owner", name)
		}
		caught := make(chan bool)
		go func() { caught <- panics(call) }()
		if !<-caught {
			t.Errorf("%s in another goroutine than the owner's is not caught", name)
		}
	}
	e.Disown()
	for name, call := range calls {
		if !panics(call) {
			t.Errorf("%s without an owner is not caught", name)
		}
	}
}

func panics(call func()) (caught bool) {
	defer func() {
		text, _ := recover().(string)
		caught = strings.Contains(text, "calls an engine")
	}()
	call()
	return false
}
