package recovery

import (
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Position is a place in a stream of operations: Off bytes into operation Op.
type Position struct {
	Op  seq.Num
	Off uint32
}

// Before reports whether p comes before q.
func (p Position) Before(q Position) bool {
	return p.Op.Less(q.Op) || p.Op == q.Op && p.Off < q.Off
}

// Packet is a packet that has left and is not acknowledged: what it carried, so that it can be made
// again from the registered memory, and when it left. The caller fills in the fields.
type Packet struct {
	Req, ReqEnd   Position   // range of the requests
	Resp, RespEnd Position   // range of the answers to RDMA reads and atomics
	First, Sent   clock.Time // when it left first, and last
	Size          int32      // bytes, header to trailer
	Partial       bool       // had room left
	Ready         bool       // carries OpReady
	Again         bool       // was sent more than once
	Cause         uint8      // why it was marked lost; the caller's

	inPipe bool // in the network, as far as is known
	sacked bool // known to have arrived from a selective acknowledgement
	lost   bool
}
