package simlink

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/link"
)

// maxRefusals limits the reports that wait at a link.
const maxRefusals = 64

// refusals holds the reports that the owner has not taken.
type refusals struct {
	pending atomic.Int32

	mu sync.Mutex // guards to
	to []link.Report
}

var _ link.Reporter = (*Link)(nil)

// Refuse makes the link report that no program listens at an address, as a forged ICMP message would. If Config.Refuse
// is set, the network calls it.
func (l *Link) Refuse(report link.Report) {
	r := &l.refused
	r.mu.Lock()
	if len(r.to) < maxRefusals {
		r.to = append(r.to, report)
	}
	r.pending.Store(int32(len(r.to)))
	r.mu.Unlock()
	l.Wake()
}

// Refused implements link.Reporter.
func (l *Link) Refused(to []link.Report) int {
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
	if way := l.paths.Get(p); way != nil {
		return way.to.addr
	}
	return netip.AddrPort{}
}

// refuse reports to the sender of a packet that no link listens at its destination.
func (n *Net) refuse(e *event) {
	if !n.cfg.Refuse {
		return
	}
	if from := e.way.from.link.Load(); from != nil && (!n.cfg.RefuseSlowly || e.way.refusals.take(n.clock.now)) {
		r := link.Report{To: e.way.to.addr}
		r.SetQuoted(e.payload)
		from.Refuse(r)
	}
}

// refuseBurst and refuseEvery are the limits of Config.RefuseSlowly.
const (
	refuseBurst = 6
	refuseEvery = int64(time.Second)
)

// bucket is a token bucket for the reports of one host to another. spent is the number of used tokens, times
// refuseEvery, at the time at.
type bucket struct{ spent, at int64 }

// take takes a token and reports whether there was one.
func (b *bucket) take(now int64) bool {
	b.spent, b.at = max(0, b.spent-(now-b.at)), now
	if b.spent > (refuseBurst-1)*refuseEvery {
		return false
	}
	b.spent += refuseEvery
	return true
}
