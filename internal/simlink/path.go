package simlink

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

// pathTable maps paths to lines. Path 0 is link.PathReply and stays empty.
type pathTable struct {
	chunks [pathChunks]atomic.Pointer[[pathChunk]atomic.Pointer[line]]

	mu   sync.Mutex // guards used and free
	used uint32
	free []link.Path
}

// line is nil for a path that was not resolved or was released.
func (t *pathTable) line(p link.Path) *line {
	if p >= pathChunk*pathChunks {
		return nil
	}
	chunk := t.chunks[p/pathChunk].Load()
	if chunk == nil {
		return nil
	}
	return chunk[p%pathChunk].Load()
}

func (t *pathTable) add(way *line) (link.Path, bool) {
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
		at.Store(new([pathChunk]atomic.Pointer[line]))
	}
	at.Load()[p%pathChunk].Store(way)
	return p, true
}

func (t *pathTable) remove(p link.Path) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line(p) == nil {
		return false
	}
	t.chunks[p/pathChunk].Load()[p%pathChunk].Store(nil)
	t.free = append(t.free, p)
	return true
}

// Resolve implements link.Link. Every address of the link's family can be resolved; packets to one
// where no link listens vanish.
func (l *Link) Resolve(to netip.AddrPort, _ uint16) (link.Path, error) {
	if !to.IsValid() || to.Addr().Is4() != l.at.addr.Addr().Is4() || to.Addr().IsUnspecified() {
		return 0, fmt.Errorf("simlink: resolve %v from %v: %w", to, l.at.addr, link.ErrUnreachable)
	}
	p, ok := l.paths.add(l.net.line(l.at.addr, to))
	if !ok {
		return 0, fmt.Errorf("simlink: resolve %v from %v: %w", to, l.at.addr, link.ErrTooManyPaths)
	}
	return p, nil
}

// Release implements link.Link. It panics on a path that is not in use.
func (l *Link) Release(p link.Path) {
	if !l.paths.remove(p) {
		panic(fmt.Sprintf("simlink: Release: path %d of %v is not in use", p, l.at.addr))
	}
}

// Paths is the number of paths that were resolved and not released.
func (l *Link) Paths() int {
	l.paths.mu.Lock()
	defer l.paths.mu.Unlock()
	return int(l.paths.used) - len(l.paths.free)
}

// PathMTU implements link.Link. It does not see black holes.
func (l *Link) PathMTU(link.Path) int { return l.net.cfg.maxPayload() }
