package dat

import (
	"unsafe"

	"github.com/datxdp/datxdp/wire"
)

// This conversion compiles only if both types have the same fields in the same order.
var _ = wire.Segment(LMRTriplet{})

// segments converts triplets to segments of package wire. It is sound because the two types differ only in name. The
// result shares the slice: the conversion copies nothing and takes no instruction.
func segments(iov []LMRTriplet) []wire.Segment { return *(*[]wire.Segment)(unsafe.Pointer(&iov)) }
