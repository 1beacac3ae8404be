package udplink

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
)

// Paths grow by chunks that never move, so that Send reads them without a lock.
const (
	pathChunk  = 1024
	pathChunks = 256
)

// path is a destination. Everything but mtu and stale is constant.
type path struct {
	to    netip.AddrPort
	name  sockaddr
	mtu   atomic.Int64 // UDP payload
	stale atomic.Bool  // a packet did not fit: ask again
}

// pathTable maps link.Path to paths. Path 0 is link.PathReply and stays empty.
type pathTable struct {
	chunks [pathChunks]atomic.Pointer[[pathChunk]atomic.Pointer[path]]

	mu   sync.Mutex // guards used and free
	used uint32
	free []link.Path
}

// get is nil for a path that was not resolved or was released.
func (t *pathTable) get(p link.Path) *path {
	if p >= pathChunk*pathChunks {
		return nil
	}
	chunk := t.chunks[p/pathChunk].Load()
	if chunk == nil {
		return nil
	}
	return chunk[p%pathChunk].Load()
}

func (t *pathTable) add(to *path) (link.Path, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var p link.Path
	if n := len(t.free); n > 0 {
		p, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if t.used+1 == pathChunk*pathChunks {
			return 0, false
		}
		t.used++
		p = link.Path(t.used)
	}
	at := &t.chunks[p/pathChunk]
	if at.Load() == nil {
		at.Store(new([pathChunk]atomic.Pointer[path]))
	}
	at.Load()[p%pathChunk].Store(to)
	return p, true
}

func (t *pathTable) remove(p link.Path) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.get(p) != nil {
		t.chunks[p/pathChunk].Load()[p%pathChunk].Store(nil)
		t.free = append(t.free, p)
	}
}

// Resolve implements link.Link. The kernel says whether there is a route. The source port is the
// link's own whatever the entropy: a socket has one.
func (l *Link) Resolve(to netip.AddrPort, _ uint16) (link.Path, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if a := to.Addr(); !a.IsValid() || a.IsUnspecified() || a.Is4() != l.local.Addr().Is4() || to.Port() == 0 {
		return 0, fmt.Errorf("udplink: resolve %v from %v: %w", to, l.local, link.ErrUnreachable)
	}
	if a := to.Addr(); a.IsLinkLocalUnicast() && a.Zone() == "" {
		to = netip.AddrPortFrom(a.WithZone(l.local.Addr().Zone()), to.Port())
	}
	mtu, err := l.probe.routeMTU(to)
	if err != nil {
		return 0, fmt.Errorf("udplink: resolve %v from %v: %w (%w)", to, l.local, link.ErrUnreachable, err)
	}
	way := &path{to: to, name: makeSockaddr(to)}
	way.mtu.Store(l.payload(mtu))
	p, ok := l.paths.add(way)
	if !ok {
		return 0, fmt.Errorf("udplink: resolve %v from %v: %w", to, l.local, link.ErrTooManyPaths)
	}
	return p, nil
}

// payload is what packets of a route with this MTU carry; 0 is an MTU that is not known.
func (l *Link) payload(mtu int) int64 {
	if mtu == 0 {
		return int64(l.caps.MaxPayload)
	}
	return int64(max(0, min(l.caps.MaxPayload, mtu-headers(l.local.Addr()))))
}

// Release implements link.Link.
func (l *Link) Release(p link.Path) { l.paths.remove(p) }

// PathMTU implements link.Link. It asks the kernel again after a packet did not fit, and is 0 for a
// path that was released.
func (l *Link) PathMTU(p link.Path) int {
	if p == link.PathReply {
		return l.caps.MaxPayload
	}
	way := l.paths.get(p)
	if way == nil {
		return 0
	}
	if way.stale.Swap(false) {
		if mtu, err := l.probe.routeMTU(way.to); err == nil {
			way.mtu.Store(l.payload(mtu))
		}
	}
	return int(way.mtu.Load())
}
