package stream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// defaultTimeout bounds a Dial whose context has no deadline.
const defaultTimeout = 10 * time.Second

// Dialer has options for Dial. The zero value of each field means the default.
type Dialer struct {
	Adapter string        // name of the adapter: xdp:INTERFACE, udp:ADDRESS or auto:INTERFACE
	IA      *dat.IA       // an adapter that the caller has opened and closes later, in place of Adapter
	Timeout time.Duration // longest time for a connection; 0 means 10 seconds

	// PeerKey or PeerName says who the peer is, as in dat.ConnectConfig. In secure mode, without both the file of peers says
	// who has the address.
	PeerKey  dat.PublicKey
	PeerName string
}

// Dial connects to the stream service at address, which is host:port. The context bounds the time until the connection
// is established, and has no effect afterwards. The adapter is opened for its first stream or listener, and closed when
// the last one is closed.
//
// Unlike a TCP connection, a stream is established when the listener's Accept takes it, and not before. Until then Dial
// waits, as long as the listener is open and its backlog has room.
//
// Dial fails at once if nobody listens at the port, or if the peer's kernel reports that no program has opened the UDP
// port. Linux limits such reports (net.ipv4.icmp_ratelimit), so repeated dials take some seconds. On an adapter that the
// process has opened with package dat before, dat.Limits.ListenGrace is the time until a dial fails. In secure mode nobody
// has authenticated such a report: Dial then fails after the time for a connect, and names the report.
func Dial(ctx context.Context, adapter, address string) (*Conn, error) {
	d := Dialer{Adapter: adapter}
	return d.dial(ctx, address)
}

// DialContext connects as Dial does. It has the signature of net.Dialer.DialContext and ignores the name of the
// network.
func (d *Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	c, err := d.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (d *Dialer) dial(ctx context.Context, address string) (*Conn, error) {
	remote, err := resolve(ctx, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	c, err := d.connect(ctx, remote)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: remote, Err: err}
	}
	return c, nil
}

// resolve returns the address of host:port.
func resolve(ctx context.Context, address string) (*net.TCPAddr, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, err
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(all[0].Unmap(), uint16(port))), nil
}

// connect dials until the time is over. A service whose backlog is full is asked again, as TCP does.
func (d *Dialer) connect(ctx context.Context, remote *net.TCPAddr) (*Conn, error) {
	if d.Adapter == "" && d.IA == nil {
		return nil, errNoAdapter
	}
	timeout := defaultTimeout
	if d.Timeout > 0 {
		timeout = d.Timeout
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := use(d.Adapter, d.IA)
	if err != nil {
		return nil, err
	}
	defer s.release()
	end := time.Now().Add(timeout)
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		c, err := s.dial(ctx, remote, dat.ConnectConfig{Timeout: time.Until(end), PeerKey: d.PeerKey, PeerName: d.PeerName})
		if err != errBacklog || time.Until(end) < pause {
			return c, err
		}
		if err := sleep(ctx, pause/2+rand.N(pause/2)); err != nil {
			return nil, err
		}
	}
}

// minPause is the longest pause after the first answer of a service whose backlog is full. It doubles up to maxPause.
const (
	minPause = 2 * time.Millisecond
	maxPause = time.Second
)

// sleep returns early, with an error, if the context is done.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dial makes one attempt.
func (s *stack) dial(ctx context.Context, remote *net.TCPAddr, how dat.ConnectConfig) (*Conn, error) {
	s.another()
	c, err := s.newConn(remote)
	if err != nil {
		return nil, err
	}
	c.active = true
	if err = c.establish(ctx, how); err != nil {
		c.mu.Lock()
		c.life = freed
		c.mu.Unlock()
		c.free()
		return nil, err
	}
	return c, nil
}

// establish connects to c.remote.
func (c *Conn) establish(ctx context.Context, how dat.ConnectConfig) (err error) {
	if c.local, err = c.stack.address(); err != nil {
		return err
	}
	addr := c.remote.AddrPort()
	how.Timeout, how.PrivateData = max(how.Timeout, time.Millisecond), hello(c.in.first.remote())
	if err := c.ep.ConnectWith(addr.Addr(), dat.ConnQual(addr.Port()), how); err != nil {
		return setupError(err)
	}
	if p, err := c.ep.Query(); err == nil {
		c.local.Port = int(uint16(p.LocalPort)) // as the peer sees it
	}
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.interrupt(&c.read)
	})()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.opened: // what has come since, the end too, is for the first Reads
			return nil
		case c.phase == ended:
			return c.cause
		case ctx.Err() != nil:
			return c.waited(ctx.Err())
		}
		c.await(&c.read)
	}
}

// address returns the address of the adapter, with a port that is made up.
func (s *stack) address() (*net.TCPAddr, error) {
	p, err := s.ia.Query()
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.Address, p.Port)), nil
}
