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
	local, at := x.local(), netip.AddrPortFrom(x.Peer, x.Port)
	var all sync.WaitGroup
	all.Go(func() { p.ask(ctx, local, at) })
	all.Go(func() { p.echoed, p.echoErr = largestPing(ctx, local, at.Addr(), x.out.Attrs().MTU) })
	all.Wait()
}

// ask probes the port in two ways, one after the other. It sends connection requests second, because each may cost one
// of the few port unreachable messages that the peer sends.
func (p *probe) ask(ctx context.Context, local netip.Addr, at netip.AddrPort) {
	if p.refused = refused(ctx, local, at, echoTail); p.refused {
		return
	}
	if p.adapter, p.busy = answers(ctx, local, at); !p.adapter {
		p.refused = refused(ctx, local, at, refusalLimit)
	}
}

// nudge sends one byte, which every adapter ignores. It makes the kernel resolve the neighbour. The error is EPERM if a
// rule of this host drops the packet.
func nudge(local netip.Addr, at netip.AddrPort) error {
	c, err := dial(local, at)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte{0})
	return err
}

func dial(local netip.Addr, at netip.AddrPort) (*net.UDPConn, error) {
	return net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0)), net.UDPAddrFromAddrPort(at))
}

// refused repeatedly sends one byte, which every adapter ignores. It reports whether ICMP port unreachable came back.
func refused(ctx context.Context, local netip.Addr, at netip.AddrPort, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := dial(local, at)
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
func answers(ctx context.Context, local netip.Addr, at netip.AddrPort) (answered, busy bool) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	l, err := udplink.Open(local, udplink.Options{Port: at.Port(), Frames: 64})
	if err != nil {
		return false, errors.Is(err, link.ErrBusy)
	}
	// ListenGrace is short, because any answer is sufficient.
	ia, err := dat.OpenLink(dat.Options{Limits: dat.Limits{ListenGrace: time.Nanosecond}}, l)
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
