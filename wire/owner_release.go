//go:build !datxdpdebug

package wire

// guard does nothing: only builds with the tag datxdpdebug check the owner.
type guard struct{}

func (guard) owned()    {}
func (guard) disowned() {}
func (guard) mustOwn()  {}
