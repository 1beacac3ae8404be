package udplink

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/datxdp/datxdp/internal/pathtable"
	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// Link is one UDP socket that implements link.Link.
type Link struct {
	local  netip.AddrPort
	caps   link.Caps
	sock   socket
	routes *routeQuery
	slab   slab
	tx     []uint32 // free transmit frames; only the owner uses it
	paths  pathtable.Table[path]
	stats  counters
	watching
}

var (
	_ link.Link     = (*Link)(nil)
	_ link.Reporter = (*Link)(nil)
	_ link.Grouper  = (*Link)(nil)
	_ link.Shedder  = (*Link)(nil)
)

// socket is the part of the link that differs between operating systems. Only the owner calls recv, send, giveBack and
// source. Any goroutine may call wait and wake.
type socket interface {
	// recv fills bufs with received packets.
	recv(bufs []link.Buf) int
	// send transmits packets. It keeps no frames.
	send(bufs []link.Buf)
	// giveBack returns a receive frame.
	giveBack(frame uint32)
	// keep is link.Link.Keep.
	keep(bufs []link.Buf)
	source(frame uint32) netip.AddrPort
	// reports writes reports of refused packets to the slice, and returns their number.
	reports(to []link.Report) int
	// shed is link.Shedder.Shed.
	shed(from netip.Addr, value, mask byte)
	wait(d time.Duration)
	wake()
	close() error
}

type counters struct {
	rxPackets, rxBytes, rxDropped, rxInvalid atomic.Uint64
	txPackets, txBytes, txDropped, txKicks   atomic.Uint64
	txFull, rxGroups, txGroups               atomic.Uint64
	wakeups                                  atomic.Uint64
}

// Open binds a link to an address of this host. The error matches link.ErrBusy if the requested port is in use.
func Open(addr netip.Addr, o Options) (*Link, error) {
	addr = addr.Unmap()
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	l, err := newLink(addr, o)
	if err != nil {
		return nil, err
	}
	if err = l.openRoutes(o.Interface); err != nil {
		return nil, bindError(l.local, err)
	}
	l.sock, err = openSocket(l, o)
	if o.Port == 0 && errors.Is(err, syscall.EADDRINUSE) {
		l.local = netip.AddrPortFrom(addr, 0)
		l.sock, err = openSocket(l, o)
	}
	if err != nil {
		l.routes.close()
		return nil, bindError(l.local, err)
	}
	l.tx = l.slab.transmit()
	return l, nil
}

// openRoutes binds the socket for route queries, which shows whether the address can be used. A tentative address is
// awaited.
func (l *Link) openRoutes(device string) (err error) {
	addr := l.local.Addr()
	open := func() error {
		l.routes, err = openRouteQuery(addr, device, l.caps.MaxPayload+headers(addr))
		return err
	}
	if err := open(); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return err
	}
	if state := route.AwaitAddress(addr, tentativeWait); state != nil && !errors.Is(state, route.ErrUnsupported) {
		return fmt.Errorf("%w (%w)", state, err)
	}
	return open()
}

// newLink describes a link. Its frames are as large as the MTU of the interface of addr allows.
func newLink(addr netip.Addr, o Options) (*Link, error) {
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() {
		return nil, fmt.Errorf("udplink: open %v: a link needs one address of this host, not a wildcard or a group", addr)
	}
	payload := o.MaxPayload
	if mtu := interfaceMTU(addr); mtu > 0 {
		payload = min(payload, mtu-headers(addr))
	}
	if payload < 1 {
		return nil, fmt.Errorf("udplink: open %v: the MTU of its interface leaves no payload", addr)
	}
	l := &Link{
		local: netip.AddrPortFrom(addr, cmp.Or(o.Port, DefaultPort)),
		caps: link.Caps{
			SourcePort: true,
			MaxPayload: payload,
			FrameSize:  payload,
			Segments:   1,
			RxFrames:   o.Frames / 2,
			TxFrames:   o.Frames,
			HostDelay:  hostDelay,
			Mode:       "udp",
		},
		slab:     newSlab(o.Frames, payload),
		watching: watching{quit: make(chan struct{}), grace: addressGrace},
	}
	return l, nil
}

// tentativeWait limits the wait for duplicate address detection, which by default takes 1 s after a random delay of up to
// 1 s (RFC 4862 section 5.4.2).
const tentativeWait = 3 * time.Second

// bindError turns an error of bind into a sentence that says what to do about it.
func bindError(local netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("udplink: bind %v: %w: another program has the port, choose another with the option port= (%w)",
			local, link.ErrBusy, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("udplink: bind %v: the program may not open port %d: choose a port of 1024 or above with the option port=, or give "+
			"the program CAP_NET_BIND_SERVICE (setcap cap_net_bind_service+ep PROGRAM): %w", local, local.Port(), err)
	case errors.Is(err, route.ErrDuplicate):
		return fmt.Errorf("udplink: bind %v: %w; give one of the two another address", local, err)
	case errors.Is(err, route.ErrTentative):
		return fmt.Errorf("udplink: bind %v: %w; wait, or check that the interface has carrier", local, err)
	case errors.Is(err, route.ErrNoAddress):
		return fmt.Errorf("udplink: bind %v: %w", local, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("udplink: bind %v: not an address of this host: %w", local, err)
	}
	return fmt.Errorf("udplink: open %v: %w", local, err)
}

// Recv implements link.Link.
func (l *Link) Recv(bufs []link.Buf) int { return l.sock.recv(bufs) }

// Alloc implements link.Link.
func (l *Link) Alloc(bufs []link.Buf) int {
	n := min(len(bufs), len(l.tx))
	for i := range n {
		f := l.tx[len(l.tx)-1-i]
		bufs[i] = link.Buf{Data: l.slab.small(f), Frame: f}
	}
	l.tx = l.tx[:len(l.tx)-n]
	return n
}

// Send implements link.Link.
func (l *Link) Send(bufs []link.Buf) {
	l.sock.send(bufs)
	l.Free(bufs)
}

// Free implements link.Link.
func (l *Link) Free(bufs []link.Buf) {
	for i := range bufs {
		if f := bufs[i].Frame; f < l.slab.received()+l.slab.kept {
			l.sock.giveBack(f)
		} else {
			l.tx = append(l.tx, f)
		}
	}
}

// Keep implements link.Link.
func (l *Link) Keep(bufs []link.Buf) { l.sock.keep(bufs) }

// Source implements link.Link.
func (l *Link) Source(b *link.Buf) netip.AddrPort { return l.sock.source(b.Frame) }

// Target implements link.Link.
func (l *Link) Target(*link.Buf) netip.Addr { return l.local.Addr() }

// Refused implements link.Reporter. Recv reads the reports that it returns.
func (l *Link) Refused(to []link.Report) int { return l.sock.reports(to) }

// Destination implements link.Reporter.
func (l *Link) Destination(p link.Path) netip.AddrPort {
	if way := l.paths.Get(p); way != nil {
		return way.to
	}
	return netip.AddrPort{}
}

// Shed implements link.Shedder.
func (l *Link) Shed(from netip.Addr, value, mask byte) { l.sock.shed(from, value, mask) }

// Wait implements link.Link.
func (l *Link) Wait(d time.Duration) { l.sock.wait(d) }

// Wake implements link.Link.
func (l *Link) Wake() { l.sock.wake() }

// Local implements link.Link.
func (l *Link) Local() netip.AddrPort { return l.local }

// Caps implements link.Link.
func (l *Link) Caps() link.Caps { return l.caps }

// Stats implements link.Link.
func (l *Link) Stats() link.Stats {
	c := &l.stats
	return link.Stats{
		RxPackets: c.rxPackets.Load(), RxBytes: c.rxBytes.Load(),
		RxDropped: c.rxDropped.Load(), RxInvalid: c.rxInvalid.Load(),
		TxPackets: c.txPackets.Load(), TxBytes: c.txBytes.Load(),
		TxDropped: c.txDropped.Load(), TxFull: c.txFull.Load(), TxKicks: c.txKicks.Load(),
		RxGroups: c.rxGroups.Load(), TxGroups: c.txGroups.Load(),
		Wakeups: c.wakeups.Load(),
	}
}

// Close implements link.Link. It waits until every Wait has returned, and ends Watch.
func (l *Link) Close() error {
	l.watching.stop()
	l.routes.close()
	return l.sock.close()
}
