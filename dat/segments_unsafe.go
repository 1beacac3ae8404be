package dat

import (
	"unsafe"

	"github.com/datxdp/datxdp/wire"
)

// A triplet and a segment have the same fields in the same order: else this does not compile.
var _ = wire.Segment(LMRTriplet{})

// segments are triplets as package wire names them: the same slice, since the two types differ in name alone. It is not
// a single instruction, so a post costs nothing for it.
func segments(iov []LMRTriplet) []wire.Segment { return *(*[]wire.Segment)(unsafe.Pointer(&iov)) }
