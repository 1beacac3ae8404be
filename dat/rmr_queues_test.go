package dat

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// stopLink stops the goroutine that polls its engine when the engine frees frames and the byte placed is not 0 any more.
type stopLink struct {
	link.Link
	placed          atomic.Pointer[byte]
	stopped, resume chan struct{}
}

func (l *stopLink) Free(b []link.Buf) {
	if p := l.placed.Load(); p != nil && *p != 0 {
		l.placed.Store(nil)
		close(l.stopped)
		<-l.resume
	}
	l.Link.Free(b)
}

// TestInvalidationWaitsForOtherQueue: while another queue writes to an RMR, the receive that has invalidated the RMR does
// not complete, and neither does the end of its connection. A Reset waits for both.
func TestInvalidationWaitsForOtherQueue(t *testing.T) {
	a, b := newManyQueuedOver(t, func(l link.Link) link.Link {
		return &stopLink{Link: l, stopped: make(chan struct{}), resume: make(chan struct{})}
	})
	x, y := pair(a, b, nil)
	other, writer := pair(a, b, nil)
	if x.drv.Load() == other.drv.Load() {
		t.Fatal("both endpoints are on one queue")
	}
	rmr, to := x.window(0, 64)
	ok(t, x.PostRecv(nil, 1, 0))
	stop := other.drv.Load().link.(*stopLink)
	resume := sync.OnceFunc(func() { close(stop.resume) })
	defer resume()
	stop.placed.Store(&x.mem[0])
	writer.mem[0] = 1
	ok(t, writer.PostRDMAWrite(writer.seg(0, 64), 1, to, 0))
	<-stop.stopped

	ok(t, y.PostSendWithInvalidate(nil, 2, 0, to.Context))
	y.done(y.request, 2, DTOSend, DTOSuccess, 0)
	unbound(t, rmr)
	expectNoEvent(t, x.recv)
	ok(t, y.Disconnect(CloseAbrupt))
	eventually(t, "the end of the connection", func() bool { return x.State() == EPDisconnected })
	expectNoEvent(t, x.recv, x.connect)

	var err error
	_ = x.inEngine(callReset, func(e *wire.Engine) error { err = e.Reset(x.conn); return nil })
	if err != wire.ErrHeld {
		t.Errorf("a Reset that does not wait returns %v", err)
	}
	done := make(chan error)
	go func() { done <- x.Reset() }()
	resume()
	ok(t, <-done)
	if x.recv.Len() != 1 || x.connect.Len() != 1 || x.State() != EPUnconnected {
		t.Errorf("after Reset: %d receives, %d events, state %v", x.recv.Len(), x.connect.Len(), x.State())
	}
	x.done(x.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
	x.expect(EventDisconnected)
}
