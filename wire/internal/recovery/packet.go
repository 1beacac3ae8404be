package recovery

import (
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Position is a position in a sequence of operations: byte Off of operation Op.
type Position struct {
	Op  seq.Num
	Off uint32
}

// Before reports whether p comes before q.
func (p Position) Before(q Position) bool {
	return p.Op.Less(q.Op) || p.Op == q.Op && p.Off < q.Off
}

// Packet is an entry for a sent packet that is not acknowledged (RFC 9002 §A.1). It records which part of which
// operations the packet carried, so that the packet can be built again from registered memory. The caller sets the
// exported fields.
type Packet struct {
	Req, ReqEnd         Position   // range of requests
	Resp, RespEnd       Position   // range of responses to RDMA reads and atomics
	FirstSentAt, SentAt clock.Time // when the packet left for the first and for the last time
	Size                int32      // in bytes, header to trailer
	Partial             bool       // the packet had room left (see Nagle's algorithm)
	Ready               bool       // the packet carries OpReady
	Retransmitted       bool       // the packet was sent more than once
	Cause               uint8      // why the packet was marked lost; defined by the caller

	inPipe    bool // the packet is assumed to be in the network
	sacked    bool // the packet was selectively acknowledged
	lost      bool // the packet is marked lost and was not sent again since
	overtaken bool // DetectLost has marked it, and no other cause since
}

// outstanding reports whether the packet is neither known to have arrived nor marked lost.
func (p *Packet) outstanding() bool { return !p.sacked && !p.lost }
