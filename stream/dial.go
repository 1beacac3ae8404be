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

	// Linger is how long Close of a stream waits for acknowledgements, as in Conn.SetLinger. 0 means the default, and a
	// negative time drops what was not acknowledged.
	Linger time.Duration
	// Security has the keys with which Adapter is opened, in place of options in its name.
	Security dat.Security

	// PeerKey or PeerName says who the peer is, as in dat.ConnectConfig. In secure mode, without both the file of peers says
	// who has the address.
	PeerKey  dat.PublicKey
	PeerName string
}

// Dial connects to the stream service at address, which is host:port. The context bounds the time until the connection
// is established, and has no effect afterwards. The adapter's name is one of the network namespace of the calling thread, as
// in Listen.
//
// The adapter is opened for its first stream or listener, which takes 2 ms over kernel UDP and 0.1 s over AF_XDP. It stays
// open for a second after the last stream, so that a program that dials again does not open it again; Drain closes it.
// If it has had a listener, it is closed with the last stream or listener, and their Close waits for that.
//
// If the host has several addresses, Dial tries those that the adapter reaches, in the order of RFC 6724, each with a share
// of the time, as net.Dialer does. The error names each. Without a host, as in ":7000", it is the adapter's own address.
//
// A stream is established before the listener's Accept takes it, as long as the listener's backlog has room. Beyond that,
// Dial waits.
//
// Dial fails at once if nobody listens at the port, or if the peer's kernel reports that no program has opened the UDP
// port. Linux limits such reports (net.ipv4.icmp_ratelimit), so repeated dials take some seconds. On an adapter that the
// process has opened with package dat before, dat.Limits.ListenGrace is the time until a dial fails. In secure mode nobody
// has authenticated such a report: Dial then fails after the time for a connect, and names the report.
func Dial(ctx context.Context, adapter, address string) (*Conn, error) {
	d := Dialer{Adapter: adapter}
	return d.dial(ctx, address)
}

// DialContext connects as Dial does. It has the signature of net.Dialer.DialContext. If the name of the network ends in 4
// or 6, as in tcp4, it uses addresses of IPv4 or IPv6 only; otherwise it ignores the name.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.dialNetwork(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (d *Dialer) dial(ctx context.Context, address string) (*Conn, error) {
	return d.dialNetwork(ctx, network, address)
}

func (d *Dialer) dialNetwork(ctx context.Context, name, address string) (c *Conn, err error) {
	defer func() { countDial(err) }()
	s, all, err := d.prepare(ctx, name, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	defer s.release()
	return d.connectAny(ctx, s, all)
}

// prepare opens the adapter, and returns the addresses. The caller releases the adapter.
func (d *Dialer) prepare(ctx context.Context, name, address string) (s *stack, all []*net.TCPAddr, err error) {
	if d.Adapter == "" && d.IA == nil {
		return nil, nil, errNoAdapter
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if s, err = use(adapter{name: d.Adapter, security: d.Security, ia: d.IA}); err != nil {
		return nil, nil, err
	}
	if all, err = s.resolve(ctx, name, address); err != nil {
		s.release()
		return nil, nil, err
	}
	return s, all, nil
}

func (d *Dialer) timeout() time.Duration {
	if d.Timeout > 0 {
		return d.Timeout
	}
	return defaultTimeout
}

// connect dials until the time is over. A service whose backlog is full is asked again, as TCP does.
func (d *Dialer) connect(ctx context.Context, s *stack, remote *net.TCPAddr, timeout time.Duration) (*Conn, error) {
	end := time.Now().Add(timeout)
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		c, err := s.dial(ctx, remote, dat.ConnectConfig{Timeout: time.Until(end), PeerKey: d.PeerKey, PeerName: d.PeerName})
		if err == nil {
			c.linger = lingerOf(d.Linger)
		}
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
		return nil, s.ended(err)
	}
	c.active = true
	if err = c.establish(ctx, how); err != nil {
		c.mu.Lock()
		c.life = freed
		c.mu.Unlock()
		c.free()
		return nil, s.ended(err)
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
		c.local = net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.LocalAddress, uint16(p.LocalPort))) // as the peer sees it
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
