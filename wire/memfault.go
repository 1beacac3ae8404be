package wire

import (
	"runtime"
	"runtime/debug"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Registered memory belongs to the consumer, who can unmap it, protect it or truncate its file while it is
// registered. An access then raises SIGSEGV or SIGBUS, which the Go runtime turns into a panic where
// debug.SetPanicOnFault is set for the goroutine: it is from the first packet of a Poll to its end. The panic is
// recovered for each packet, so that what it ends is the one connection whose packet it was.

// faults is the engine's part: whether faults of memory are panics now.
type faults struct {
	catching    bool
	wasCatching bool // and were, for the goroutine that owns the engine
}

// catchFaults makes faults of memory panics until allowFaults.
func (e *Engine) catchFaults() {
	if !e.catching {
		e.catching, e.wasCatching = true, debug.SetPanicOnFault(true)
	}
}

// allowFaults makes faults what they were before catchFaults.
func (e *Engine) allowFaults() {
	if e.catching {
		e.catching = false
		debug.SetPanicOnFault(e.wasCatching)
	}
}

// intake is how far consume has come with a packet.
type intake struct {
	chunk proto.Chunk // being handled
	done  int         // operations of the peer that this packet has completed
	over  bool        // nothing is written any more
}

// catchIntake is deferred by consume. After a fault in memory that a packet is placed in it ends the connection.
func (c *Conn) catchIntake(in *intake, next *bool) {
	if in.over {
		return
	}
	mustBeFault(recover())
	*next = false
	switch ch := &in.chunk; ch.Op {
	case proto.OpSend, proto.OpSendInv, proto.OpSendOnly:
		if w := c.nextRecv(); w != nil {
			c.completeRecv(w, StatusLocalProtection, 0)
		}
	case proto.OpReadResp, proto.OpAtomicResp:
		c.failRequest(ch.Num, StatusLocalProtection)
	default: // a peer's write or atomic has no work request here
	}
	c.reject(proto.ReasonMemory, &in.chunk, in.done)
}

// catchBuild is deferred by build. After a fault in memory that is to be sent it gives the frames of the packet
// back and ends the connection.
func (c *Conn) catchBuild(p *packet, built *bool) {
	if p.over {
		return
	}
	mustBeFault(recover())
	*built = false
	p.abandon()
	if p.answers {
		c.fault(proto.ReasonMemory, proto.OpReadResp, int(c.resp.at(p.op).num))
		return
	}
	c.failRequest(p.op, StatusLocalProtection)
	c.fault(proto.ReasonMemory, 0, noRequest)
}

// mustBeFault panics again with what was recovered unless it is an access to memory that is not there. Such a
// panic has the address; one for a nil pointer does not.
func mustBeFault(recovered any) {
	if f, ok := recovered.(interface {
		runtime.Error
		Addr() uintptr
	}); !ok || f.Addr() == 0 {
		panic(recovered)
	}
}
