package simlink

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
)

// maxRefusals bounds the reports that wait at a link.
const maxRefusals = 64

// refusals are the reports of a link that the owner has not taken.
type refusals struct {
	pending atomic.Int32

	mu sync.Mutex // guards to
	to []netip.AddrPort
}

var _ link.Reporter = (*Link)(nil)

// Refuse makes the link report that nothing listens at an address, as a forged ICMP message would. With
// Config.Refuse the network does so by itself.
func (l *Link) Refuse(at netip.AddrPort) {
	r := &l.refused
	r.mu.Lock()
	if len(r.to) < maxRefusals {
		r.to = append(r.to, at)
	}
	r.pending.Store(int32(len(r.to)))
	r.mu.Unlock()
	l.Wake()
}

// Refused implements link.Reporter.
func (l *Link) Refused(to []netip.AddrPort) int {
	r := &l.refused
	if r.pending.Load() == 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := copy(to, r.to)
	r.to = r.to[:copy(r.to, r.to[n:])]
	r.pending.Store(int32(len(r.to)))
	return n
}

// Destination implements link.Reporter.
func (l *Link) Destination(p link.Path) netip.AddrPort {
	if way := l.paths.line(p); way != nil {
		return way.to.addr
	}
	return netip.AddrPort{}
}

// refuse reports to the sender of a packet that no link listens at its destination.
func (n *Net) refuse(way *line) {
	if n.cfg.Refuse {
		if from := way.from.link.Load(); from != nil {
			from.Refuse(way.to.addr)
		}
	}
}
