//go:build !datxdpdebug

package wire

// guard checks the owner in builds with the tag datxdpdebug only.
type guard struct{}

func (guard) owned()    {}
func (guard) disowned() {}
func (guard) mustOwn()  {}
