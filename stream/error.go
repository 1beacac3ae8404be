package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/datxdp/datxdp/dat"
)

// network is the name of the network in errors.
const network = "dat"

// failure is an error of package syscall or context, with a text that says more. Its Timeout method makes that of
// net.OpError work.
type failure struct {
	kind error
	text string
}

func failed(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

func (f *failure) Error() string { return f.kind.Error() + ": " + f.text }
func (f *failure) Unwrap() error { return f.kind }

// Timeout reports whether a time has passed.
func (f *failure) Timeout() bool {
	t, ok := f.kind.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

var (
	errPipe        error = syscall.EPIPE
	errClosedWrite       = failed(syscall.EPIPE, "write after CloseWrite")
	errNoAdapter         = errors.New("no adapter: name one, such as xdp:eth0 or udp:10.0.0.1")
	errBacklog           = failed(syscall.ECONNREFUSED, "the backlog of the service is full: try later, or set a larger ListenConfig.Backlog")
)

// opError adds the operation and the addresses to an error, as package net does. The Timeout method of the returned
// error reports whether a deadline has passed or the peer was silent.
func (c *Conn) opError(op string, err error) error {
	e := &net.OpError{Op: op, Net: network, Err: err}
	if c.local != nil {
		e.Source = c.local
	}
	if c.remote != nil {
		e.Addr = c.remote
	}
	return e
}

// endOf returns the error for an event that ends a connection or its setup; io.EOF if the peer has closed the stream.
func (c *Conn) endOf(ev *dat.Event) error {
	switch ev.Number {
	case dat.EventDisconnected:
		if c.in.ended {
			return io.EOF
		}
		return syscall.ECONNRESET
	case dat.EventPeerRejected:
		return refusal(ev.PrivateData)
	case dat.EventNonPeerRejected:
		return c.notAccepted(ev.BreakReason &^ dat.BreakByPeer)
	case dat.EventUnreachable:
		return unreachable(ev.BreakReason)
	case dat.EventTimedOut:
		if ev.BreakReason != 0 {
			return failed(syscall.ETIMEDOUT, "%v", ev.BreakReason)
		}
		return failed(syscall.ETIMEDOUT, "is a server running at %v, and reachable?", c.remote)
	default:
		if ev.BreakReason&^dat.BreakByPeer == dat.BreakTimeout {
			return failed(syscall.ETIMEDOUT, "%v", ev.BreakReason)
		}
		return failed(syscall.ECONNRESET, "%v", ev.BreakReason)
	}
}

// unreachable returns the error of an attempt to which a router or the own kernel has answered, with the number of
// connect(2).
func unreachable(why dat.BreakReason) error {
	switch why {
	case dat.BreakNoNet:
		return failed(syscall.ENETUNREACH, "%v", why)
	case dat.BreakProhibited:
		return failed(syscall.EACCES, "%v", why)
	default:
		return failed(syscall.EHOSTUNREACH, "%v", why)
	}
}

// notAccepted returns the error of a request that the provider of the peer has refused.
func (c *Conn) notAccepted(why dat.BreakReason) error {
	switch why {
	case dat.BreakNoListener:
		return failed(syscall.ECONNREFUSED, "no service listens at port %d of %v", c.remote.Port, c.remote.IP)
	case dat.BreakBacklog:
		return errBacklog
	default:
		return failed(syscall.ECONNREFUSED, "%v", why)
	}
}

// ended returns the reason why the adapter has ended or was closed, in place of err, which is what package dat returns then.
// The error of an adapter that the program has closed is net.ErrClosed too.
func (s *stack) ended(err error) error {
	why := context.Cause(s.ia.Context())
	switch {
	case err == nil || why == nil:
		return err
	case errors.Is(why, dat.ErrAbort):
		return fmt.Errorf("%w: %w", net.ErrClosed, why)
	}
	return fmt.Errorf("%w: %w", syscall.ENETDOWN, why)
}

// setupError returns the error for a call of package dat that failed before a connection or a service existed. It adds
// the error number that package net would return.
func setupError(err error) error {
	switch {
	case errors.Is(err, dat.ErrConnQualInUse):
		return failed(syscall.EADDRINUSE, "another service has this port at the address of the adapter, in this process or another: choose another, or 0 for any")
	case errors.Is(err, dat.ErrInvalidAddress):
		return failed(noRoute(err), "no route leads there from this adapter: %v", err)
	}
	return err
}

// noRoute returns the error number of connect(2) for an address without a path: what the kernel has returned for the route,
// as EACCES if a rule or a route prohibits it and EINVAL if one drops it (blackhole), and otherwise ENETUNREACH.
func noRoute(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		switch number {
		case syscall.EACCES, syscall.EINVAL, syscall.EHOSTUNREACH:
			return number
		default: // of another kind
		}
	}
	return syscall.ENETUNREACH
}

// waited returns the error of a dial whose context is done.
func (c *Conn) waited(err error) error {
	if err == context.DeadlineExceeded {
		return failed(err, "is a server running at %v, and reachable?", c.remote)
	}
	return err
}
