package doctor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

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
	// echoed is the largest IP packet that ping got back, in bytes. echoErr says why ping could not run.
	echoed  int
	echoErr error
}

func (p *probe) answered() bool { return p.adapter || p.refused || p.echoed > 0 }

// run pings the host and probes its port.
func (p *probe) run(ctx context.Context, x *exam) {
	own, at, mtu := x.own(), x.peerAt(), x.out.Attrs().MTU
	var all sync.WaitGroup
	all.Go(func() { p.port(ctx, own, at) })
	all.Go(func() { p.echoed, p.echoErr = largestPing(ctx, own.Addr(), at.Addr(), mtu) })
	all.Wait()
	if least := min(mtu, leastMTU); p.echoed > 0 && p.echoed < least {
		p.echoed = p.again(ctx, own.Addr(), at.Addr(), least) // a queue on the way may have dropped a burst
	}
}

// port probes the port in two ways, one after the other. It sends connection requests second, because each may cost one
// of the few port unreachable messages that the peer sends.
func (p *probe) port(ctx context.Context, own, at netip.AddrPort) {
	if p.refused = refused(ctx, own, at, echoTail); p.refused {
		return
	}
	if p.connect(ctx, own, at); !p.adapter {
		p.refused = refused(ctx, own, at, refusalLimit)
	}
}

// again pings with packets of one size alone. It returns the size if one is answered.
func (p *probe) again(ctx context.Context, local, to netip.Addr, size int) int {
	f := familyOf(to)
	n, err := f.ping(ctx, local, to, []int{size})
	if err != nil {
		return p.echoed
	}
	return max(p.echoed, n)
}

// nudge sends one byte, which every adapter ignores. It makes the kernel resolve the neighbour. The error is EPERM if a
// rule of this host drops the packet.
func nudge(own, at netip.AddrPort) error {
	c, err := dial(own, at)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte{0})
	return err
}

// dial connects a socket. It has the adapter's port, which policy rules may select, unless that is in use.
func dial(own, at netip.AddrPort) (*net.UDPConn, error) {
	c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(own), net.UDPAddrFromAddrPort(at))
	if errors.Is(err, syscall.EADDRINUSE) {
		own = netip.AddrPortFrom(own.Addr(), 0)
		return net.DialUDP("udp", net.UDPAddrFromAddrPort(own), net.UDPAddrFromAddrPort(at))
	}
	return c, err
}

// refused repeatedly sends one byte, which every adapter ignores. It reports whether ICMP port unreachable came back.
func refused(ctx context.Context, own, at netip.AddrPort, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := dial(own, at)
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
func (p *probe) connect(ctx context.Context, local, at netip.AddrPort) {
	ev, err := ask(ctx, local, at, dat.Security{Insecure: true})
	p.busy = errors.Is(err, link.ErrBusy)
	p.adapter = err == nil && answered(&ev)
	p.secure = p.adapter && ev.BreakReason == dat.BreakSecure
}

// authenticate requests a connection in secure mode, and reports whether the two ends know each other's keys.
func (p *probe) authenticate(ctx context.Context, local, at netip.AddrPort, s dat.Security) error {
	ev, err := ask(ctx, local, at, s)
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
func ask(ctx context.Context, local, at netip.AddrPort, s dat.Security) (ev dat.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	l, err := udplink.Open(local.Addr(), udplink.Options{Port: local.Port(), Frames: 64})
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
