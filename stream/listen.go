package stream

import (
	"cmp"
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// ListenConfig has options for Listen. The zero value of each field means the default.
type ListenConfig struct {
	Adapter string  // name of the adapter: xdp:INTERFACE, udp:ADDRESS or auto:INTERFACE
	IA      *dat.IA // an adapter that the caller has opened and closes later, in place of Adapter

	// Backlog is the number of streams that may wait for Accept; 0 means 128. An address may have as many as are free, so
	// half of them if all streams come from one address. The dials beyond that wait.
	Backlog int

	Linger   time.Duration // of accepted streams, as in Dialer
	Security dat.Security  // the keys with which Adapter is opened, in place of options in its name
}

// Listener is a service that accepts streams. It implements net.Listener; any goroutine may call its methods.
type Listener struct {
	stack *stack
	evd   *dat.EVD
	psp   *dat.PSP
	addr  *net.TCPAddr

	linger time.Duration // of accepted streams

	ctx     context.Context // done when the listener is closed or has failed; its cause says why
	cancel  context.CancelCauseFunc
	serving sync.WaitGroup
	once    sync.Once
	backlog
	deadline deadline // of Accept
}

// Listen starts a service at a port of the adapter. With port 0 it picks a free one. Ports are DAT connection
// qualifiers: they are no UDP ports, and every adapter has its own. The context is used only while Listen runs.
//
// As with TCP, dialers connect before Accept is called, as long as the backlog has room. If it has none, further dialers
// wait.
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
	if lc.Backlog < 0 {
		return nil, failed(syscall.EINVAL, "a ListenConfig.Backlog of %d: set the number of streams that may wait, or 0 for %d", lc.Backlog, defaultBacklog)
	}
	s, err := use(adapter{name: lc.Adapter, security: lc.Security, ia: lc.IA})
	if err != nil {
		return nil, err
	}
	l := &Listener{stack: s, linger: lingerOf(lc.Linger)}
	l.ctx, l.cancel = context.WithCancelCause(s.ia.Context())
	if err := l.start(cmp.Or(lc.Backlog, defaultBacklog), port); err != nil {
		err = s.ended(err)
		l.free()
		return nil, err
	}
	l.serving.Go(l.serve)
	return l, nil
}

// start creates the objects of the service. The caller frees them, also after an error.
func (l *Listener) start(backlog int, port uint16) (err error) {
	ia := l.stack.ia
	l.stack.listens()
	if l.addr, err = l.stack.address(); err != nil {
		return err
	}
	if err := l.stack.reachable(); err != nil {
		return err
	}
	if l.evd, err = ia.CreateEVD(backlog, nil, dat.EVDCR); err != nil {
		return err
	}
	l.backlog.init(backlog)
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

// Accept waits for the next stream. A request of another protocol is refused and does not end Accept. When the adapter
// has ended, for example because its interface was deleted, Accept returns the adapter's error: a server ends with it, or
// closes the listener and its streams, and listens again. If the program has closed the adapter, the error is net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	expired := l.deadline.channel()
	err := os.ErrDeadlineExceeded
	select {
	case <-expired:
	case <-l.ctx.Done():
		err = l.over()
	default:
		select {
		case c := <-l.ready:
			l.took(c)
			return c, nil
		case <-expired:
		case <-l.ctx.Done():
			err = l.over()
		}
	}
	return nil, &net.OpError{Op: "accept", Net: network, Addr: l.addr, Err: err}
}

// over returns the reason why the service has ended.
func (l *Listener) over() error {
	why := context.Cause(l.ctx)
	if why == net.ErrClosed {
		return why
	}
	return l.stack.ended(why)
}

// SetDeadline sets the time after which Accept returns os.ErrDeadlineExceeded; the zero time means never. The signature
// is that of net.TCPListener.SetDeadline.
func (l *Listener) SetDeadline(t time.Time) error {
	if l.ctx.Err() != nil {
		return &net.OpError{Op: "set", Net: network, Addr: l.addr, Err: net.ErrClosed}
	}
	l.deadline.set(t)
	return nil
}

// Close ends the service. Requests that wait are refused, and streams that wait for Accept are reset; accepted streams go
// on. A blocked Accept returns net.ErrClosed.
func (l *Listener) Close() error {
	err := error(&net.OpError{Op: "close", Net: network, Addr: l.addr, Err: net.ErrClosed})
	l.once.Do(func() {
		l.cancel(net.ErrClosed)
		l.serving.Wait()
		l.free()
		err = nil
	})
	return err
}

func (l *Listener) free() {
	l.cancel(net.ErrClosed)
	if l.psp != nil {
		_ = l.psp.Free()
	}
	if l.evd != nil {
		for ev := (dat.Event{}); l.evd.Dequeue(&ev) == nil; {
			_ = ev.CR.Reject(nil)
		}
		_ = l.evd.Free()
	}
	l.backlog.clear()
	l.deadline.set(time.Time{})
	l.stack.release()
}

// Addr implements net.Listener. It returns a *net.TCPAddr with the adapter's address and the port.
func (l *Listener) Addr() net.Addr { return l.addr }

var _ net.Listener = (*Listener)(nil)
