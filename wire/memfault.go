package wire

import (
	"runtime"
	"runtime/debug"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// The consumer can unmap or protect registered memory, or truncate the file behind it. An access then raises SIGSEGV or
// SIGBUS. Go turns the signal into a panic if debug.SetPanicOnFault is set for the goroutine. Poll calls
// debug.SetPanicOnFault before it handles its first data packet, and restores the old setting before it returns. The
// code that handles or builds one packet recovers the panic, so only the connection of that packet breaks.

// memoryAccess is the state of an engine that accesses registered memory.
type memoryAccess struct {
	faults
	windowUse
}

// faults is the state of fault handling on an engine.
type faults struct {
	catching    bool // this engine has set SetPanicOnFault
	wasCatching bool // the setting before, which allowFaults restores
}

// catchFaults turns memory faults into panics until allowFaults is called.
func (e *Engine) catchFaults() {
	if !e.catching {
		e.catching, e.wasCatching = true, debug.SetPanicOnFault(true)
	}
}

// allowFaults restores the setting that catchFaults changed. It also ends the use of a window, because the engine
// accesses no registered memory until the next catchFaults.
func (e *Engine) allowFaults() {
	if e.catching {
		e.endWindowUse()
		e.catching = false
		debug.SetPanicOnFault(e.wasCatching)
	}
}

// intake is the progress of consumePacket in one packet.
type intake struct {
	chunk    proto.Chunk // current chunk
	done     int         // number of the peer's operations that this packet has completed
	finished bool        // all chunks are handled, so a later panic is not a memory fault
}

// catchIntake breaks the connection after a fault in the memory in which a chunk was placed. consumePacket defers it.
func (c *Conn) catchIntake(in *intake, next *bool) {
	if in.finished {
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
	default: // no work request here belongs to a write or an atomic of the peer
	}
	c.rejectPacket(proto.ReasonMemory, &in.chunk, in.done)
}

// catchBuild abandons the packet and breaks the connection after a fault in the memory that is to be sent. buildPacket
// defers it.
func (c *Conn) catchBuild(p *packet, built *bool) {
	if p.built {
		return
	}
	mustBeFault(recover())
	*built = false
	p.abandon()
	if p.isResponse {
		c.breakOnFault(proto.ReasonMemory, proto.OpReadResp, int(c.resp.at(p.op).num))
		return
	}
	c.failRequest(p.op, StatusLocalProtection)
	c.breakOnFault(proto.ReasonMemory, 0, noRequest)
}

// mustBeFault panics again unless the recovered value is a memory fault at an address. A nil dereference has no
// address. It is a bug and has to crash the program.
func mustBeFault(recovered any) {
	if f, ok := recovered.(interface {
		runtime.Error
		Addr() uintptr
	}); !ok || f.Addr() == 0 {
		panic(recovered)
	}
}
