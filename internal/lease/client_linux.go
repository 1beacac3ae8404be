package lease

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/datxdp/datxdp/internal/exclusive"
)

// Client is a connection to the daemon, and has one lease at most. Any goroutine may call its methods; they wait for one
// another, and at most callLimit for the daemon.
//
// If the daemon is restarted, the lease goes on, and the next call connects to the new daemon and adopts the lease.
type Client struct {
	path     string
	mu       sync.Mutex
	conn     *net.UnixConn // nil if it broke
	fd       int           // of conn, listed in package exclusive
	sequence uint32
	lease    uint32 // or 0
	closed   bool
}

// Dial connects to the daemon. An empty path selects SocketPath. The error wraps ErrNoDaemon if none listens.
func Dial(path string) (*Client, error) {
	if path == "" {
		path = SocketPath()
	}
	c := &Client{path: path}
	if err := c.connect(); err != nil {
		return nil, err
	}
	return c, nil
}

// Lease asks for a lease. It lasts until Close, or until the process ends. The caller owns the files of the Grant.
func (c *Client) Lease(r Request) (*Grant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lease != 0 {
		return nil, fmt.Errorf("lease: the connection has lease %d", c.lease)
	}
	b, files, err := c.call(kindLease, r.body(), kindGranted)
	if err != nil {
		return nil, err
	}
	g, err := b.(*grantBody).parse()
	n := int(b.(*grantBody).Sockets)
	if err == nil && (n == 0 || len(files) != 2*n) {
		err = fmt.Errorf("%w: %d files for %d sockets", errMalformed, len(files), n)
	}
	if err != nil {
		closeAll(files)
		c.hangUp()
		return nil, fmt.Errorf("lease: %w", err)
	}
	g.Sockets, g.UMEMs = files[:n:n], files[n:]
	c.lease = g.ID
	return g, nil
}

// Listen directs connection requests for a qualifier to the lease. The error wraps ErrTaken if another lease has it. To
// listen twice is no error.
func (c *Client) Listen(qualifier uint64) error { return c.do(kindListen, &listenBody{qualifier}) }

// Unlisten ends Listen.
func (c *Client) Unlisten(qualifier uint64) error { return c.do(kindUnlisten, &listenBody{qualifier}) }

// do makes a call that has no result.
func (c *Client) do(k kind, body any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _, err := c.retry(k, body, kindDone)
	return err
}

// Route looks up the path from the lease to an address.
func (c *Client) Route(to netip.Addr) (Route, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, _, err := c.retry(kindRoute, &routeBody{putAddr(to)}, kindRouted)
	if err != nil {
		return Route{}, err
	}
	r := b.(*routedBody)
	return Route{parseAddr(r.From), int(r.MTU)}, nil
}

// List returns the leases of the user that exist; for root, those of all users.
func (c *Client) List() (all []Held, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for after := uint32(0); ; {
		b, _, err := c.retry(kindList, &listBody{after}, kindListed)
		if err != nil {
			return nil, err
		}
		before := len(all)
		for _, l := range b.(*listedBody).Leases {
			if l.Lease <= after {
				break
			}
			h, err := l.parse()
			if err != nil {
				return nil, fmt.Errorf("lease: %w", err)
			}
			all, after = append(all, h), l.Lease
		}
		if len(all)-before < listPage {
			return all, nil
		}
	}
}

// Close ends the lease.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.hangUp()
	return nil
}

// retry makes a call. If the daemon was restarted, it connects and makes the call again.
func (c *Client) retry(k kind, body any, want kind) (any, []*os.File, error) {
	b, files, err := c.call(k, body, want)
	if err == nil || c.conn != nil || c.closed {
		return b, files, err
	}
	deadline := time.Now().Add(restartLimit)
	for c.conn == nil {
		if err = c.connect(); err == nil {
			break
		}
		if !errors.Is(err, ErrNoDaemon) || time.Now().After(deadline) {
			return nil, nil, err
		}
		time.Sleep(redialPause)
	}
	if err := c.adopt(); err != nil {
		return nil, nil, err
	}
	return c.call(k, body, want)
}

// adopt asks a new daemon for the lease that the old one made.
func (c *Client) adopt() error {
	if c.lease == 0 {
		return nil
	}
	_, files, err := c.call(kindAdopt, &adoptBody{c.lease}, kindGranted)
	closeAll(files)
	return err
}

func (c *Client) connect() error {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: c.path, Net: "unixpacket"})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoDaemon, err)
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { c.fd = int(fd) })
	}
	if err != nil {
		conn.Close()
		return fmt.Errorf("lease: %w", err)
	}
	exclusive.Add(c.fd)
	c.conn = conn
	return nil
}

// hangUp closes the connection.
func (c *Client) hangUp() {
	if c.conn != nil {
		exclusive.Remove(c.fd)
		c.conn.Close()
		c.conn = nil
	}
}
