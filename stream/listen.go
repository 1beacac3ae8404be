package stream

import (
	"context"
	"errors"
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

// Listen starts a service at a port of the adapter. Ports are DAT connection qualifiers: they are no UDP ports, and
// every adapter has its own. The context is used only while Listen runs.
func Listen(ctx context.Context, adapter string, port uint16) (*Listener, error) {
	lc := ListenConfig{Adapter: adapter}
	return lc.Listen(ctx, port)
}

// Listen starts a service at a port of the adapter.
func (lc *ListenConfig) Listen(ctx context.Context, port uint16) (*Listener, error) {
	l, err := lc.listen(ctx, port)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	return l, nil
}

func (lc *ListenConfig) listen(ctx context.Context, port uint16) (l *Listener, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if lc.Adapter == "" && lc.IA == nil {
		return nil, errors.New("no adapter: name one, such as xdp:eth0 or udp:10.0.0.1")
	}
	s, err := use(lc.Adapter, lc.IA)
	if err != nil {
		return nil, err
	}
	l = &Listener{stack: s}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			l.free()
		}
	}()
	if l.addr, err = s.address(); err != nil {
		return nil, err
	}
	l.addr.Port = int(port)
	backlog := lc.Backlog
	if backlog == 0 {
		backlog = defaultBacklog
	}
	if l.evd, err = s.ia.CreateEVD(backlog, nil, dat.EVDCR); err != nil {
		return nil, err
	}
	if l.psp, err = s.ia.CreatePSP(dat.ConnQual(port), l.evd, dat.PSPConsumer); err != nil {
		return nil, err
	}
	return l, nil
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

// refuse rejects a request and tells the peer why, as far as private data has room for it.
func refuse(cr *dat.CR, reason error) {
	text := reason.Error()
	_ = cr.Reject([]byte(text[:min(len(text), maxReason)]))
}

// maxReason is the number of bytes of a reason; it is below the private data that every adapter carries.
const maxReason = 128

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
