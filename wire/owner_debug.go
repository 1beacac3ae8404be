//go:build datxdpdebug

package wire

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// guard records the goroutine that owns an engine.
type guard struct {
	used  atomic.Bool   // the engine has had an owner
	owner atomic.Uint64 // number of the owner's goroutine; 0: no owner
}

func (g *guard) owned() {
	g.owner.Store(goroutine())
	g.used.Store(true)
}

// disowned clears the record. It runs before the token is released.
func (g *guard) disowned() {
	g.mustOwn()
	g.owner.Store(0)
}

// mustOwn panics unless the calling goroutine owns the engine. It does nothing before the engine has its first owner.
func (g *guard) mustOwn() {
	if !g.used.Load() {
		return
	}
	if owner, caller := g.owner.Load(), goroutine(); owner != caller {
		panic(fmt.Sprintf("wire: goroutine %d calls an engine that goroutine %d owns (0: no owner)", caller, owner))
	}
}

// stacks pools the buffers of goroutine. A local buffer would escape to the heap on each call.
var stacks = sync.Pool{New: func() any { return new([32]byte) }}

// goroutine returns the number of the calling goroutine, parsed from its stack trace: "goroutine 18 [running]".
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
