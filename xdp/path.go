package xdp

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
)

// Hop is the way to an address: where packets leave and to which neighbour. MAC is called for
// each packet and does not lock.
type hop interface {
	MAC() (mac [6]byte, ok bool)
	Source() netip.Addr
	MTU() int
}

// router finds hops.
type router interface {
	Resolve(to netip.Addr) (hop, error)
	Release(hop)
	// Answer is the MAC address that an answer to a packet goes to, which claims to be from an IP address and came from
	// a MAC address. It is called for each answer and does not lock.
	Answer(to netip.Addr, from [6]byte) (mac [6]byte, ok bool)
}

// path is one resolved destination. It does not change after it was published.
type path struct {
	id       link.Path
	hop      hop // nil when the destination is this host
	template [headers6]byte
	size     int // bytes of template: headers4 or headers6
	sum4     uint64
}

func (p *path) v6() bool { return p.size == headers6 }

// A link.Path is an index into the table and a generation, so that a path that was released and
// whose place is taken again is known to be gone.
const (
	pathBits  = 18
	chunkBits = 8
	maxPaths  = 1 << pathBits
	chunkSize = 1 << chunkBits
)

type pathChunk [chunkSize]atomic.Pointer[path]

// pathTable holds the paths of a socket. Look-up takes no lock; the rest is under mu.
type pathTable struct {
	chunks [maxPaths / chunkSize]atomic.Pointer[pathChunk]

	mu   sync.Mutex
	free []uint32 // places to use again
	gens []uint16 // per place
}

// find returns a path that is still resolved, or nil.
func (t *pathTable) find(id link.Path) *path {
	i := uint32(id) & (maxPaths - 1)
	c := t.chunks[i>>chunkBits].Load()
	if c == nil {
		return nil
	}
	if p := c[i&(chunkSize-1)].Load(); p != nil && p.id == id {
		return p
	}
	return nil
}

// add publishes p under a new id.
func (t *pathTable) add(p *path) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.gens) == 0 {
		t.gens = append(t.gens, 0) // place 0 is link.PathReply
	}
	var i uint32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else if i = uint32(len(t.gens)); i < maxPaths {
		t.gens = append(t.gens, 0)
	} else {
		return link.ErrTooManyPaths
	}
	slot := &t.chunks[i>>chunkBits]
	if slot.Load() == nil {
		slot.Store(new(pathChunk))
	}
	p.id = link.Path(uint32(t.gens[i])<<pathBits | i)
	slot.Load()[i&(chunkSize-1)].Store(p)
	return nil
}

// remove takes a path out and returns it, or nil if it is not there.
func (t *pathTable) remove(id link.Path) *path {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.find(id)
	if p == nil {
		return nil
	}
	i := uint32(id) & (maxPaths - 1)
	t.chunks[i>>chunkBits].Load()[i&(chunkSize-1)].Store(nil)
	t.gens[i] = (t.gens[i] + 1) & (1<<(32-pathBits) - 1)
	t.free = append(t.free, i)
	return p
}

// drain removes every path and calls f with each.
func (t *pathTable) drain(f func(*path)) {
	for i := range t.chunks {
		c := t.chunks[i].Load()
		for j := 0; c != nil && j < chunkSize; j++ {
			if p := c[j].Load(); p != nil && t.remove(p.id) != nil {
				f(p)
			}
		}
	}
}

// newPath builds the header template of a path from src to dst.
func newPath(mac [6]byte, src, dst netip.AddrPort, h hop) (*path, error) {
	if src.Addr().Is4() != dst.Addr().Is4() {
		return nil, fmt.Errorf("xdp: from %v to %v: %w", src, dst, link.ErrUnreachable)
	}
	p := &path{hop: h, size: headers6}
	if dst.Addr().Is4() {
		p.size = headers4
	}
	b := p.template[:p.size]
	copy(b[ethSrc:], mac[:])
	ip := b[ethSize:]
	if p.v6() {
		be.PutUint16(b[ethType:], typeIPv6)
		be.PutUint32(ip, 6<<28|ecnCapable<<20)
		ip[v6Next], ip[v6Hops] = protocolUDP, hops
		copy(ip[v6Src:], src.Addr().AsSlice())
		copy(ip[v6Dst:], dst.Addr().AsSlice())
	} else {
		be.PutUint16(b[ethType:], typeIPv4)
		ip[0], ip[v4TOS] = 4<<4|v4Size/4, ecnCapable
		ip[v4Fragment], ip[v4TTL], ip[v4Protocol] = dontFragment, hops, protocolUDP
		copy(ip[v4Src:], src.Addr().AsSlice())
		copy(ip[v4Dst:], dst.Addr().AsSlice())
		p.sum4 = sum(ip[:v4Size], 0)
	}
	udp := b[p.size-udpSize:]
	be.PutUint16(udp[udpSrc:], src.Port())
	be.PutUint16(udp[udpDst:], dst.Port())
	return p, nil
}

// write lays the headers for size bytes of payload into h, p.size bytes long, all but the UDP
// checksum of IPv6. ok is false while the neighbour is unknown.
func (p *path) write(h []byte, size int) (ok bool) {
	copy(h, p.template[:p.size])
	if p.hop != nil {
		mac, known := p.hop.MAC()
		if !known {
			return false
		}
		copy(h[ethDst:], mac[:])
	}
	ip := h[ethSize:]
	if p.v6() {
		fill6(ip, size)
		return true
	}
	length := uint16(v4Size + udpSize + size)
	be.PutUint16(ip[v4Length:], length)
	be.PutUint16(ip[v4Sum:], ^fold(p.sum4+uint64(length)))
	be.PutUint16(ip[v4Size+udpLength:], length-v4Size)
	return true
}
