package wire

import "sync/atomic"

// Role says what the owner of an engine does with it; 0 means no owner. The owner's package defines the other values.
type Role uint32

// Token is the ownership of an engine. At most one goroutine holds it. Its methods take a few nanoseconds. Any
// goroutine may call them, except Disown and Become, which only the owner may call.
//
// A build with the tag datxdpdebug records which goroutine owns the engine, and panics if another goroutine calls into
// the engine. It does not check an engine that never had an owner, because protocol tests drive such an engine from a
// single goroutine.
type Token struct {
	guard
	role  atomic.Uint32
	rings atomic.Int32 // calls of Ring that no Poll has handled
}

// TryOwn takes ownership in the given role, which is not 0. It reports false if the engine has an owner.
func (t *Token) TryOwn(as Role) bool {
	if !t.role.CompareAndSwap(0, uint32(as)) {
		return false
	}
	t.owned()
	return true
}

// Become changes the role of the owner, which calls it.
func (t *Token) Become(as Role) { t.role.Store(uint32(as)) }

// Disown ends ownership. It reports true if another goroutine has called Ring and no Poll has handled that call. The
// caller then tries to own the engine again and polls it, so that no post is left behind.
func (t *Token) Disown() (rung bool) {
	t.disowned()
	t.role.Store(0)
	return t.rings.Load() != 0
}

// Role returns the role of the current owner, or 0 if there is none.
func (t *Token) Role() Role { return Role(t.role.Load()) }
