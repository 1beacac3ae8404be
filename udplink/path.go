package udplink

import (
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
)

// path is a resolved destination. Only mtu, stale and reached change.
type path struct {
	to      netip.AddrPort
	name    sockaddr
	mtu     atomic.Int64 // largest UDP payload in bytes
	stale   atomic.Bool  // a packet did not fit the interface: read the MTU again
	reached uint64       // version of Reach at which the neighbour was resolved; for the gate
}

// Resolve implements link.Link. It fails if the kernel has no route. The link ignores entropy, because its socket has
// only one source port.
func (l *Link) Resolve(to netip.AddrPort, _ uint16) (link.Path, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if a := to.Addr(); !a.IsValid() || a.IsUnspecified() || a.Is4() != l.local.Addr().Is4() || to.Port() == 0 {
		return 0, fmt.Errorf("udplink: resolve %v from %v: %w", to, l.local, link.ErrUnreachable)
	}
	if a := to.Addr(); a.IsLinkLocalUnicast() && a.Zone() == "" {
		to = netip.AddrPortFrom(a.WithZone(l.local.Addr().Zone()), to.Port())
	}
	mtu, err := l.routes.routeMTU(to)
	if err != nil {
		return 0, fmt.Errorf("udplink: resolve %v from %v: %w (%w)", to, l.local, link.ErrUnreachable, err)
	}
	way := &path{to: to, name: makeSockaddr(to)}
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

// Release implements link.Link.
func (l *Link) Release(p link.Path) { l.paths.Remove(p) }

// PathMTU implements link.Link. If a packet did not fit since the last call, it reads the MTU from the kernel again. It
// returns 0 for a released path.
func (l *Link) PathMTU(p link.Path) int {
	if p == link.PathReply {
		return l.caps.MaxPayload
	}
	way := l.paths.Get(p)
	if way == nil {
		return 0
	}
	if way.stale.Swap(false) {
		if mtu, err := l.routes.routeMTU(way.to); err == nil {
			way.mtu.Store(l.payload(mtu))
		}
	}
	return int(way.mtu.Load())
}
