package doctor

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/udplink"
)

const (
	// neighbourLimit limits the wait for a next hop's MAC address. The kernel solicits once per second.
	neighbourLimit = 1200 * time.Millisecond
	// connectLimit limits the wait for an adapter, which answers within milliseconds.
	connectLimit = 500 * time.Millisecond
	// refusalLimit is the limit of the second wait for "port unreachable". It is that long because after a burst a
	// kernel sends only one of these messages per second. refusalPause is the time between two attempts.
	refusalLimit = 1100 * time.Millisecond
	refusalPause = 200 * time.Millisecond
	// nobody is a connection qualifier on which no program listens: "doctor" in ASCII. Any answer to a request for it
	// proves that there is an adapter.
	nobody dat.ConnQual = 0x646f63746f72
)

// probe holds the answers of a peer.
type probe struct {
	// adapter: the DAT protocol answered. secure: it accepts secure connections only. refused: the host reported that the
	// port is closed. busy: our own port is in use, so no answer could be received.
	adapter, secure, refused, busy bool
	// echoed is the largest IP packet that ping got back, in bytes. echoErr says why ping could not run. arrived is the
	// interface through which echo replies have arrived; 0 if there was none.
	echoed, arrived int
	echoErr         error
}

// origin is where packets leave this host: an address and port of it and, if the routes do not decide, an interface. With
// an interface, answers that arrive through another one are not heard, as an adapter over AF_XDP does not hear them.
type origin struct {
	netip.AddrPort
	device string
}

func (p *probe) answered() bool { return p.adapter || p.refused || p.echoed > 0 }

// run pings the host and probes its port.
func (p *probe) run(ctx context.Context, x *exam) {
	own, at, mtu := x.leaves(), x.peerAt(), x.out.Attrs().MTU
	var all sync.WaitGroup
	all.Go(func() { p.port(ctx, own, at) })
	all.Go(func() { p.echoed, p.arrived, p.echoErr = largestPing(ctx, own, at.Addr(), mtu) })
	all.Wait()
	least := min(mtu, leastMTU)
	if p.echoed > 0 && p.echoed < least {
		p.echoed = max(p.echoed, p.again(ctx, own, at.Addr(), least)) // a queue on the way may have dropped a burst
	}
	if p.echoed == 0 && p.echoErr == nil && ctx.Err() == nil { // a loaded host is late, or answers arrive through another interface
		n := p.again(ctx, origin{own.AddrPort, ""}, at.Addr(), least)
		if own.device == "" {
			p.echoed = n
		}
	}
}

// port probes the port in two ways, one after the other. It sends connection requests second, because each may cost one
// of the few port unreachable messages that the peer sends.
func (p *probe) port(ctx context.Context, own origin, at netip.AddrPort) {
	if p.refused = refused(ctx, own, at, echoTail); p.refused {
		return
	}
	if p.connect(ctx, own, at); !p.adapter {
		p.refused = refused(ctx, own, at, refusalLimit)
	}
}

// again pings with packets of one size alone. It returns the size if one is answered.
func (p *probe) again(ctx context.Context, own origin, to netip.Addr, size int) int {
	n, arrived, _ := familyOf(to).ping(ctx, own, to, []int{size}) // 0 on an error
	p.arrived = cmp.Or(arrived, p.arrived)
	return n
}

// nudge sends one byte, which every adapter ignores. It makes the kernel resolve the neighbour. The error is EPERM if a
// rule of this host drops the packet.
func (own origin) nudge(at netip.AddrPort) error {
	c, err := own.dial(at)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte{0})
	return err
}

// dial connects a socket. It has the adapter's port, which policy rules may select, unless that is in use.
func (own origin) dial(at netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(own.AddrPort), Control: func(_, _ string, c syscall.RawConn) (err error) {
		refused := c.Control(func(fd uintptr) { err = own.bind(int(fd)) })
		return errors.Join(err, refused)
	}}
	c, err := d.Dial("udp", at.String())
	if errors.Is(err, syscall.EADDRINUSE) {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(own.Addr(), 0))
		return d.Dial("udp", at.String())
	}
	return c, err
}

// bind binds a socket to the interface.
func (own origin) bind(fd int) error {
	if own.device == "" {
		return nil
	}
	return unix.BindToDevice(fd, own.device)
}

// refused repeatedly sends one byte, which every adapter ignores. It reports whether ICMP port unreachable came back.
func refused(ctx context.Context, own origin, at netip.AddrPort, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := own.dial(at)
	if err != nil {
		return false
	}
	defer c.Close()
	for ctx.Err() == nil {
		_, err := c.Write([]byte{0})
		if err == nil {
			_ = c.SetReadDeadline(time.Now().Add(min(limit, refusalPause))) // Read returns the error
			_, err = c.Read(make([]byte, 1))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.Is(err, syscall.ECONNREFUSED)
		}
	}
	return false
}

// connect requests a connection to a qualifier without a listener. Any answer proves that there is an adapter. The
// answer arrives at our own port.
func (p *probe) connect(ctx context.Context, own origin, at netip.AddrPort) {
	ev, err := ask(ctx, own, at, dat.Security{Insecure: true})
	p.busy = errors.Is(err, link.ErrBusy)
	p.adapter = err == nil && answered(&ev)
	p.secure = p.adapter && ev.BreakReason == dat.BreakSecure
}

// authenticate requests a connection in secure mode, and reports whether the two ends know each other's keys.
func (p *probe) authenticate(ctx context.Context, own origin, at netip.AddrPort, s dat.Security) error {
	ev, err := ask(ctx, own, at, s)
	if err == nil && !answered(&ev) {
		err = errSilentHandshake
	}
	return err
}

var errSilentHandshake = errors.New("the handshake has no answer")

// answered reports whether an adapter has answered a request.
func answered(ev *dat.Event) bool {
	return ev.Number == dat.EventNonPeerRejected && ev.BreakReason != dat.BreakPort || ev.Number == dat.EventPeerRejected || ev.Number == dat.EventEstablished
}

// ask requests a connection to a qualifier without a listener, and returns the event that ends the request.
func ask(ctx context.Context, own origin, at netip.AddrPort, s dat.Security) (ev dat.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	l, err := udplink.Open(own.Addr(), udplink.Options{Port: own.Port(), Frames: 64, Interface: own.device})
	if err != nil {
		return ev, err
	}
	// ListenGrace is short, because any answer is sufficient.
	ia, err := dat.OpenLink(dat.Options{PeerPort: at.Port(), Security: s, Limits: dat.Limits{ListenGrace: time.Nanosecond}}, l)
	if err != nil {
		return ev, err
	}
	defer ia.Close()
	evd, err := request(ia, at.Addr())
	if err != nil {
		return ev, err
	}
	for ctx.Err() == nil {
		if _, err := evd.Wait(20*time.Millisecond, 1, &ev); err == nil {
			return ev, nil
		}
	}
	return dat.Event{}, nil
}

// request requests a connection. The result is an event.
func request(ia *dat.IA, to netip.Addr) (*dat.EVD, error) {
	pz, err := ia.CreatePZ()
	if err != nil {
		return nil, err
	}
	evd, err := ia.CreateEVD(16, nil, dat.EVDDTO|dat.EVDConnection)
	if err != nil {
		return nil, err
	}
	ep, err := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
	if err != nil {
		return nil, err
	}
	return evd, ep.Connect(to, nobody, 2*connectLimit, nil)
}
