package stream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/datxdp/datxdp/dat"
)

var (
	errPipe        error = syscall.EPIPE
	errClosedWrite       = errors.New("write after CloseWrite")
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

// network is the name of the network in errors.
const network = "dat"

// endOf returns the error for an event that ends a connection or its setup; io.EOF if the peer has closed the stream.
func (c *Conn) endOf(ev *dat.Event) error {
	switch ev.Number {
	case dat.EventDisconnected:
		if c.in.ended {
			return io.EOF
		}
		return syscall.ECONNRESET
	case dat.EventPeerRejected:
		return fmt.Errorf("the server has refused the connection: %q", ev.PrivateData)
	case dat.EventNonPeerRejected:
		return fmt.Errorf("%w: %v", syscall.ECONNREFUSED, ev.BreakReason)
	case dat.EventUnreachable:
		return syscall.EHOSTUNREACH
	case dat.EventTimedOut:
		return fmt.Errorf("%w: is a server running there, and reachable?", syscall.ETIMEDOUT)
	default:
		if ev.BreakReason&^dat.BreakByPeer == dat.BreakTimeout {
			return syscall.ETIMEDOUT
		}
		return fmt.Errorf("%w: %v", syscall.ECONNRESET, ev.BreakReason)
	}
}
