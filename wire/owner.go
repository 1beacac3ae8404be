package wire

import "sync/atomic"

// Role says what the owner of an engine does with it; 0 is no owner. The package that drives engines names its roles.
type Role uint32

// Token is the ownership of an engine: at most one goroutine holds it. Its methods take a few nanoseconds and may be
// called by any goroutine, except Disown and Become, which the owner calls.
//
// A build with the tag datxdpdebug remembers which goroutine owns the engine, and panics in every call into the engine
// that another goroutine makes. An engine that was never owned is not checked: tests of the protocol drive it from one
// goroutine.
type Token struct {
	guard
	role  atomic.Uint32
	rings atomic.Int32 // calls of Ring that no Poll has answered
}

// TryOwn takes the ownership in a role, which is not 0, and reports whether nobody had it.
func (t *Token) TryOwn(as Role) bool {
	if !t.role.CompareAndSwap(0, uint32(as)) {
		return false
	}
	t.owned()
	return true
}

// Become changes the role of the owner.
func (t *Token) Become(as Role) { t.role.Store(uint32(as)) }

// Disown gives the ownership up. It reports that somebody rang meanwhile: the caller tries to own the engine again and
// polls.
func (t *Token) Disown() (rung bool) {
	t.disowned()
	t.role.Store(0)
	return t.rings.Load() != 0
}

// Role is the role of the owner at the moment of the call; 0 without an owner.
func (t *Token) Role() Role { return Role(t.role.Load()) }
