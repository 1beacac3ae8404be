//go:build datxdpdebug

package wire

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// guard remembers the goroutine that owns an engine.
type guard struct {
	used  atomic.Bool   // somebody has owned the engine
	owner atomic.Uint64 // number of the goroutine; 0: nobody
}

func (g *guard) owned() {
	g.owner.Store(goroutine())
	g.used.Store(true)
}

// disowned is called before the token is free.
func (g *guard) disowned() {
	g.mustOwn()
	g.owner.Store(0)
}

// mustOwn panics unless the calling goroutine owns the engine, or nobody ever has.
func (g *guard) mustOwn() {
	if !g.used.Load() {
		return
	}
	if owner, caller := g.owner.Load(), goroutine(); owner != caller {
		panic(fmt.Sprintf("wire: goroutine %d calls an engine that goroutine %d owns (0: nobody)", caller, owner))
	}
}

// stacks are what goroutine reads into: a variable of its own would be allocated for each call.
var stacks = sync.Pool{New: func() any { return new([32]byte) }}

// goroutine is the number of the calling goroutine, as the runtime prints it: "goroutine 18 [running]".
func goroutine() (number uint64) {
	text := stacks.Get().(*[32]byte)
	defer stacks.Put(text)
	for _, c := range text[len("goroutine "):runtime.Stack(text[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		number = 10*number + uint64(c-'0')
	}
	return number
}
