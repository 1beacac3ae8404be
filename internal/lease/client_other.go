//go:build !linux

package lease

import (
	"fmt"
	"net/netip"
)

// Client is a connection to the daemon, which needs Linux.
type Client struct{}

// Dial returns an error that wraps ErrNoDaemon.
func Dial(string) (*Client, error) { return nil, fmt.Errorf("%w: AF_XDP needs Linux", ErrNoDaemon) }

// Lease is not called: there is no Client.
func (*Client) Lease(Request) (*Grant, error) { return nil, ErrNoDaemon }

// Listen is not called: there is no Client.
func (*Client) Listen(uint64) error { return ErrNoDaemon }

// Unlisten is not called: there is no Client.
func (*Client) Unlisten(uint64) error { return ErrNoDaemon }

// Route is not called: there is no Client.
func (*Client) Route(netip.Addr) (Route, error) { return Route{}, ErrNoDaemon }

// List is not called: there is no Client.
func (*Client) List() ([]Held, error) { return nil, ErrNoDaemon }

// Close is not called: there is no Client.
func (*Client) Close() error { return nil }
