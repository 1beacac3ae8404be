package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// LinkDown ends every connection, because the link can no longer move packets. Established connections break,
// connection attempts of this side time out, and accepted connections that are not established yet fail. The caller
// owns the engine.
func (e *Engine) LinkDown() {
	e.mustOwn()
	for i := range e.table.slots {
		c := e.table.slots[i].conn
		if c == nil {
			continue
		}
		switch c.State() {
		case Connecting:
			c.end(KindTimedOut, StatusFlushed)
		case Accepting:
			c.end(KindAcceptFailed, StatusFlushed)
		case Established, Draining:
			c.breakDown(StatusTransport, proto.ReasonLocal)
		case Idle, Closed:
		}
	}
	e.publish()
}
