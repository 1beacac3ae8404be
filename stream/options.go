package stream

import (
	"net"
	"time"
)

// The methods of net.TCPConn in this file have no effect. Libraries ask for them by an interface.

// SetNoDelay does nothing: a Write is sent at once while fewer than 8 messages wait for a credit.
func (c *Conn) SetNoDelay(bool) error { return c.ifOpen() }

// SetKeepAlive does nothing: the protocol has keep-alives of its own (dat.Limits.KeepAlive).
func (c *Conn) SetKeepAlive(bool) error { return c.ifOpen() }

// SetKeepAlivePeriod does nothing, as SetKeepAlive.
func (c *Conn) SetKeepAlivePeriod(time.Duration) error { return c.ifOpen() }

// ifOpen returns an error after Close, as the methods of net.TCPConn do.
func (c *Conn) ifOpen() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed() {
		return c.opError("set", net.ErrClosed)
	}
	return nil
}
