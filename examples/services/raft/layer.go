package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/datxdp/datxdp/examples/services/transport"
)

// layer is the raft.StreamLayer of a node. Raft does not close the connections that it has accepted, so the layer keeps
// a list of all connections and closes them itself.
type layer struct {
	net.Listener
	link *transport.Transport
	self net.Addr

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

var _ raft.StreamLayer = (*layer)(nil)

func listen(ctx context.Context, link *transport.Transport, self string) (*layer, error) {
	ip := net.ParseIP(self)
	if ip == nil {
		return nil, errors.New(self + " is no IP address")
	}
	l, err := link.Listen(ctx, raftPort)
	if err != nil {
		return nil, err
	}
	return &layer{Listener: l, link: link, self: &net.TCPAddr{IP: ip, Port: raftPort}, conns: map[net.Conn]struct{}{}}, nil
}

// Addr implements net.Listener. It returns the address by which other nodes know this one.
func (l *layer) Addr() net.Addr { return l.self }

// Accept implements net.Listener.
func (l *layer) Accept() (net.Conn, error) { return l.keep(l.Listener.Accept()) }

// Dial implements raft.StreamLayer.
func (l *layer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return l.keep(l.link.DialContext(ctx, "tcp", string(address)))
}

// keep adds a connection to the list.
func (l *layer) keep(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	l.conns[c] = struct{}{}
	return &conn{c, l}, nil
}

// Close implements net.Listener. It closes all connections too.
func (l *layer) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.conns {
		_ = c.Close() // one that raft is closing
	}
	clear(l.conns)
	return err
}

// conn is a connection in the list of a layer.
type conn struct {
	net.Conn
	layer *layer
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.layer.mu.Lock()
	delete(c.layer.conns, c.Conn)
	c.layer.mu.Unlock()
	return c.Conn.Close()
}
