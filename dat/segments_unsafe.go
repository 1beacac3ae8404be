package dat

import (
	"unsafe"

	"github.com/datxdp/datxdp/wire"
)

// This conversion compiles only if both types have the same fields in the same order.
var _ = wire.Segment(LMRTriplet{})

// wireSegments converts triplets to segments of package wire. It copies nothing: the result has the same elements as
// iov. The conversion is sound because the two types differ only in name.
func wireSegments(iov []LMRTriplet) []wire.Segment { return *(*[]wire.Segment)(unsafe.Pointer(&iov)) }
