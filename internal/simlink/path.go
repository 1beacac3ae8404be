package simlink

import (
	"fmt"
	"net/netip"

	"github.com/datxdp/datxdp/link"
)

// Resolve implements link.Link. It resolves every address of the link's family. Packets to an address without a link
// are lost.
func (l *Link) Resolve(to netip.AddrPort, _ uint16) (link.Path, error) {
	if !to.IsValid() || to.Addr().Is4() != l.at.addr.Addr().Is4() || to.Addr().IsUnspecified() {
		return 0, fmt.Errorf("simlink: resolve %v from %v: %w", to, l.at.addr, link.ErrUnreachable)
	}
	p, err := l.paths.Add(l.net.line(l.at.addr, to))
	if err != nil {
		return 0, fmt.Errorf("simlink: resolve %v from %v: %w", to, l.at.addr, err)
	}
	return p, nil
}

// ResolveFrom implements link.Link. The link has only one address.
func (l *Link) ResolveFrom(_ netip.Addr, to netip.AddrPort, entropy uint16) (link.Path, error) {
	return l.Resolve(to, entropy)
}

// Release implements link.Link. It panics on a path that is not in use.
func (l *Link) Release(p link.Path) {
	if l.paths.Remove(p) == nil {
		panic(fmt.Sprintf("simlink: Release: path %d of %v is not in use", p, l.at.addr))
	}
	delete(l.sending.single, p)
}

// SendSingly implements link.Grouper.
func (l *Link) SendSingly(p link.Path) { l.sending.single[p] = true }

// Paths returns the number of paths in use.
func (l *Link) Paths() int { return l.paths.Len() }

// PathMTU implements link.Link. It ignores black holes.
func (l *Link) PathMTU(link.Path) int { return l.cfg.maxPayload() }
