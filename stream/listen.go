package stream

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/datxdp/datxdp/dat"
)

// defaultBacklog is the number of connection requests that may wait for Accept.
const defaultBacklog = 128

// ListenConfig has options for Listen. The zero value of each field means the default.
type ListenConfig struct {
	Adapter string  // name of the adapter: xdp:INTERFACE, udp:ADDRESS or auto:INTERFACE
	IA      *dat.IA // an adapter that the caller has opened and closes later, in place of Adapter
	Backlog int     // connection requests that may wait for Accept; 0 means 128
}

// Listener is a service that accepts streams. It implements net.Listener; any goroutine may call its methods.
type Listener struct {
	stack *stack
	evd   *dat.EVD
	psp   *dat.PSP
	addr  *net.TCPAddr

	ctx       context.Context // done when the listener is closed
	cancel    context.CancelFunc
	accepting sync.Mutex // held by Accept: one call at a time
	once      sync.Once
}

// Listen starts a service at a port of the adapter. With port 0 it picks a free one. Ports are DAT connection
// qualifiers: they are no UDP ports, and every adapter has its own. The context is used only while Listen runs.
//
// Unlike a TCP listener, a Listener establishes no connection before Accept is called: the requests of dialers wait in
// the backlog, and use no memory for rings there.
func Listen(ctx context.Context, adapter string, port uint16) (*Listener, error) {
	lc := ListenConfig{Adapter: adapter}
	return lc.Listen(ctx, port)
}

// Listen starts a service at a port of the adapter, as the function Listen does.
func (lc *ListenConfig) Listen(ctx context.Context, port uint16) (*Listener, error) {
	l, err := lc.listen(ctx, port)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: setupError(err)}
	}
	return l, nil
}

func (lc *ListenConfig) listen(ctx context.Context, port uint16) (*Listener, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if lc.Adapter == "" && lc.IA == nil {
		return nil, errNoAdapter
	}
	s, err := use(lc.Adapter, lc.IA)
	if err != nil {
		return nil, err
	}
	l := &Listener{stack: s}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.start(cmp.Or(lc.Backlog, defaultBacklog), port); err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

// start creates the objects of the service. The caller frees them, also after an error.
func (l *Listener) start(backlog int, port uint16) (err error) {
	ia := l.stack.ia
	if l.addr, err = l.stack.address(); err != nil {
		return err
	}
	if l.evd, err = ia.CreateEVD(backlog, nil, dat.EVDCR); err != nil {
		return err
	}
	if port == 0 {
		l.psp, err = ia.CreatePSPAny(l.evd, dat.PSPConsumer)
	} else {
		l.psp, err = ia.CreatePSP(dat.ConnQual(port), l.evd, dat.PSPConsumer)
	}
	if err == nil {
		l.addr.Port = int(l.psp.Qual())
	}
	return err
}

// Accept waits for the next stream. A request of another protocol is refused and does not end Accept.
func (l *Listener) Accept() (net.Conn, error) {
	l.accepting.Lock()
	defer l.accepting.Unlock()
	for {
		var ev dat.Event
		if _, err := l.evd.WaitContext(l.ctx, 1, &ev); err != nil {
			if l.ctx.Err() != nil {
				err = net.ErrClosed
			}
			return nil, &net.OpError{Op: "accept", Net: network, Addr: l.addr, Err: err}
		}
		if c := l.accept(ev.CR); c != nil {
			return c, nil
		}
	}
}

// accept answers a request. It returns nil if it has refused the request.
func (l *Listener) accept(cr *dat.CR) *Conn {
	q, err := cr.Query()
	if err != nil {
		return nil
	}
	peer, err := parseHello(q.PrivateData)
	if err != nil {
		refuse(cr, err)
		return nil
	}
	l.stack.another()
	c, err := l.stack.newConn(net.TCPAddrFromAddrPort(netip.AddrPortFrom(q.RemoteAddress, uint16(q.RemotePort))))
	if err != nil {
		refuse(cr, err)
		return nil
	}
	c.local, c.out.peer.remoteRing = l.addr, peer
	if err := cr.Accept(c.ep, hello(c.in.first.remote())); err != nil {
		_ = cr.Reject(nil)
		c.free()
		return nil
	}
	return c
}

// Close ends the service. Requests that wait are refused; accepted streams go on. A blocked Accept returns net.ErrClosed.
func (l *Listener) Close() error {
	err := error(&net.OpError{Op: "close", Net: network, Addr: l.addr, Err: net.ErrClosed})
	l.once.Do(func() {
		l.cancel()
		l.accepting.Lock()
		defer l.accepting.Unlock()
		l.free()
		err = nil
	})
	return err
}

func (l *Listener) free() {
	l.cancel()
	if l.psp != nil {
		_ = l.psp.Free()
	}
	if l.evd != nil {
		for ev := (dat.Event{}); l.evd.Dequeue(&ev) == nil; {
			_ = ev.CR.Reject(nil)
		}
		_ = l.evd.Free()
	}
	l.stack.release()
}

// Addr implements net.Listener. It returns a *net.TCPAddr with the adapter's address and the port.
func (l *Listener) Addr() net.Addr { return l.addr }

var _ net.Listener = (*Listener)(nil)
