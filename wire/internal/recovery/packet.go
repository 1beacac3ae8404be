package recovery

import (
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Position is a position in a sequence of operations: Off bytes into operation Op.
type Position struct {
	Op  seq.Num
	Off uint32
}

// Before reports whether p comes before q.
func (p Position) Before(q Position) bool {
	return p.Op.Less(q.Op) || p.Op == q.Op && p.Off < q.Off
}

// Packet is a sent packet that is not acknowledged (RFC 9002 §A.1). It records which operations the packet carried, so
// that it can be built again from registered memory. The caller sets the exported fields.
type Packet struct {
	Req, ReqEnd   Position   // range of requests
	Resp, RespEnd Position   // range of responses to RDMA reads and atomics
	First, Sent   clock.Time // when it left for the first and for the last time
	Size          int32      // in bytes, header to trailer
	Partial       bool       // had room left (see Nagle's algorithm)
	Ready         bool       // carries OpReady
	Again         bool       // was sent more than once
	Cause         uint8      // why it was marked lost; defined by the caller

	inPipe bool // assumed to be in the network
	sacked bool // acknowledged selectively
	lost   bool // marked lost and not sent again
}
