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
	// adapter: the DAT protocol answered. refused: the host reported that the port is closed. busy: our own port is in
	// use, so no answer could be received.
	adapter, refused, busy bool
	// echoed is the largest IP packet that ping got back, in bytes. echoErr says why ping could not run.
	echoed  int
	echoErr error
}

func (p *probe) answered() bool { return p.adapter || p.refused || p.echoed > 0 }

// run pings the host and probes its port.
func (p *probe) run(ctx context.Context, x *exam) {
	own, at := x.own(), netip.AddrPortFrom(x.Peer, x.remotePort())
	var all sync.WaitGroup
	all.Go(func() { p.ask(ctx, own, at) })
	all.Go(func() { p.echoed, p.echoErr = largestPing(ctx, own.Addr(), at.Addr(), x.out.Attrs().MTU) })
	all.Wait()
}

// ask probes the port in two ways, one after the other. It sends connection requests second, because each may cost one
// of the few port unreachable messages that the peer sends.
func (p *probe) ask(ctx context.Context, own, at netip.AddrPort) {
	if p.refused = refused(ctx, own, at, echoTail); p.refused {
		return
	}
	if p.adapter, p.busy = answers(ctx, own, at); !p.adapter {
		p.refused = refused(ctx, own, at, refusalLimit)
	}
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

// answers requests a connection to a qualifier without a listener. Any answer proves that there is an adapter. The
// answer arrives at our own port; busy means that this port is in use.
func answers(ctx context.Context, own, at netip.AddrPort) (answered, busy bool) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	l, err := udplink.Open(own.Addr(), udplink.Options{Port: own.Port(), Frames: 64})
	if err != nil {
		return false, errors.Is(err, link.ErrBusy)
	}
	// ListenGrace is short, because any answer is sufficient.
	ia, err := dat.OpenLink(dat.Options{PeerPort: at.Port(), Limits: dat.Limits{ListenGrace: time.Nanosecond}}, l)
	if err != nil {
		return false, false
	}
	defer ia.Close()
	evd, err := connect(ia, at.Addr())
	if err != nil {
		return false, false
	}
	var ev dat.Event
	for ctx.Err() == nil {
		if _, err := evd.Wait(20*time.Millisecond, 1, &ev); err == nil {
			return ev.Number == dat.EventNonPeerRejected && ev.BreakReason != dat.BreakPort || ev.Number == dat.EventPeerRejected || ev.Number == dat.EventEstablished, false
		}
	}
	return false, false
}

// connect requests a connection. The result is an event.
func connect(ia *dat.IA, to netip.Addr) (*dat.EVD, error) {
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
