package udplink

import (
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
)

// path is a resolved destination. Only mtu, stale, reached and alone change.
type path struct {
	to      netip.AddrPort
	name    sockaddr
	mtu     atomic.Int64 // largest UDP payload in bytes
	stale   atomic.Bool  // a packet did not fit the interface: read the MTU again
	reached uint64       // version of Reach at which the neighbour was resolved; for the gate
	alone   bool         // packets leave one by one: the device cannot cut a group, or the peer takes none; only the owner uses it
}

// Resolve implements link.Link. It fails if the kernel has no route. The link ignores entropy, because its socket has
// only one source port.
func (l *Link) Resolve(to netip.AddrPort, _ uint16) (link.Path, error) {
	if why := l.ended.Load(); why != nil {
		return 0, *why
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if a := to.Addr(); !a.IsValid() || a.IsUnspecified() || a.Is4() != l.local.Addr().Is4() || to.Port() == 0 {
		return 0, fmt.Errorf("udplink: resolve %v from %v: %w", to, l.local, link.ErrUnreachable)
	}
	if a := to.Addr(); a.IsLinkLocalUnicast() && a.Zone() == "" {
		to = netip.AddrPortFrom(a.WithZone(l.local.Addr().Zone()), to.Port())
	}
	mtu, zone, err := l.routes.query(to)
	if err != nil {
		return 0, fmt.Errorf("udplink: resolve %v from %v: %w (%w)", to, l.local, link.ErrUnreachable, err)
	}
	way := &path{to: to, name: makeSockaddr(to, zone)}
	way.mtu.Store(l.payload(mtu))
	p, err := l.paths.Add(way)
	if err != nil {
		return 0, fmt.Errorf("udplink: resolve %v from %v: %w", to, l.local, err)
	}
	return p, nil
}

// ResolveFrom implements link.Link. The link has only one address.
func (l *Link) ResolveFrom(_ netip.Addr, to netip.AddrPort, entropy uint16) (link.Path, error) {
	return l.Resolve(to, entropy)
}

// payload returns the largest payload of packets on a route with this MTU; 0 means an unknown MTU.
func (l *Link) payload(mtu int) int64 {
	if mtu == 0 {
		return int64(l.caps.MaxPayload)
	}
	return int64(max(0, min(l.caps.MaxPayload, mtu-headers(l.local.Addr()))))
}

// SendSingly implements link.Grouper.
func (l *Link) SendSingly(p link.Path) {
	if way := l.paths.Get(p); way != nil {
		way.alone = true
	}
}

// Release implements link.Link.
func (l *Link) Release(p link.Path) { l.paths.Remove(p) }

// PathMTU implements link.Link. If a packet did not fit since the last call, it reads the MTU again. The MTU of the
// routing table may be some milliseconds old. It returns 0 for a released path.
func (l *Link) PathMTU(p link.Path) int {
	if p == link.PathReply {
		return l.caps.MaxPayload
	}
	way := l.paths.Get(p)
	if way == nil {
		return 0
	}
	if way.stale.Load() {
		if mtu, _, err := l.routes.query(way.to); err == nil {
			now := l.payload(mtu)
			way.stale.Store(way.mtu.Swap(now) <= now) // a packet did not fit, so a limit that is no lower is old
		}
	}
	return int(way.mtu.Load())
}
