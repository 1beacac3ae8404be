//go:build !linux

package dat

// mappings checks nothing, because only Linux lists the mappings of a process.
type mappingChecker struct{}

func (*mappingChecker) checkRange([]byte, MemPriv) error { return nil }
func (*mappingChecker) close()                           {}
