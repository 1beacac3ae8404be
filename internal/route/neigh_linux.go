package route

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
)

const (
	nudUsable = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY |
		netlink.NUD_PROBE | netlink.NUD_PERMANENT | netlink.NUD_NOARP
	nudStatic = netlink.NUD_PERMANENT | netlink.NUD_NOARP
)

// sighting is one entry of the kernel's neighbour table.
type sighting struct {
	state int
	mac   uint64 // in the format of Hop.mac; 0 if unknown
}

// neighbour is a next hop that hops use. The table's lock guards it.
type neighbour struct {
	addr   netip.Addr
	mac    uint64 // the last one that the kernel had
	listed bool   // the kernel has it now
	hops   map[*Hop]struct{}
	kickAt time.Time // time of the next request to the kernel; Table.requests sets it
	place  int       // index in Table.requests
	pause  time.Duration
}

// attach makes a hop follow a neighbour. The caller holds mu.
func (t *Table) attach(h *Hop, via netip.Addr) {
	n := t.neighbours[via]
	if n == nil {
		n = &neighbour{addr: via, hops: make(map[*Hop]struct{})}
		t.neighbours[via] = n
		t.follow(n, t.seen[via], time.Now())
		if e := t.macs.find(via); n.mac == 0 && e != nil && !e.expired() { // it has answered a probe
			n.mac = packMAC(e.mac[:])
		}
	}
	n.hops[h] = struct{}{}
	h.via = n
	h.mac.Store(n.mac)
}

// detach removes a hop from its neighbour and makes its MAC unknown. The caller holds mu.
func (t *Table) detach(h *Hop) {
	h.mac.Store(0)
	if h.via == nil {
		return
	}
	delete(h.via.hops, h)
	if len(h.via.hops) == 0 {
		delete(t.neighbours, h.via.addr)
		t.requests.set(h.via, time.Time{})
		t.note(h.via.addr, t.seen[h.via.addr])
	}
	h.via = nil
}

// sight records a netlink message about a neighbour. The caller holds mu.
func (t *Table) sight(m *netlink.Neigh, gone bool, now time.Time) {
	addr := address(m.IP)
	if m.LinkIndex != t.index || !addr.IsValid() || m.Flags&netlink.NTF_PROXY != 0 {
		return
	}
	var s sighting
	if gone {
		delete(t.seen, addr)
	} else {
		s.state = m.State
		if m.State&nudUsable != 0 && len(m.HardwareAddr) == 6 {
			s.mac = packMAC(m.HardwareAddr)
		}
		t.seen[addr] = s
	}
	t.note(addr, s)
	if n := t.neighbours[addr]; n != nil {
		t.follow(n, s, now)
	}
}

// countFailure counts a message that the kernel has given up a neighbour. The state in a list of neighbours does not count,
// because it may be older than the hops. The caller holds mu.
func (t *Table) countFailure(m *netlink.Neigh) {
	n := t.neighbours[address(m.IP)]
	if n == nil || n.mac != 0 || m.LinkIndex != t.index || m.State != netlink.NUD_FAILED {
		return
	}
	for h := range n.hops {
		h.failed.Add(1)
	}
}

// follow updates a neighbour with the kernel's state and plans the next request. The caller holds mu.
//
// The neighbour keeps its last MAC address while the kernel has none: if the kernel removes its entry, resolves it again
// or reports a failure. The kernel sees no packets of the peer, so only answers to its requests confirm an entry. A peer
// does not answer while its neighbour table is full, but its connections continue. If the peer has another MAC address
// now, the requests find it, because the kernel broadcasts them after a failure. If the peer is gone, the timers of the
// protocol end its connections.
func (t *Table) follow(n *neighbour, s sighting, now time.Time) {
	n.listed = s.mac != 0
	if n.listed && s.mac != n.mac {
		n.mac = s.mac
		for h := range n.hops {
			h.mac.Store(s.mac)
		}
	}
	var at time.Time
	switch {
	case s.state&nudStatic != 0:
		n.pause = 0 // a request would make the static entry dynamic
	case s.state == netlink.NUD_INCOMPLETE, s.state == netlink.NUD_FAILED:
		at = n.backOff(now)
	case s.state == netlink.NUD_STALE, n.mac == 0:
		at = now
	case s.state == 0:
		at, n.pause = now.Add(evicted), 0
	default:
		at, n.pause = now.Add(refresh), 0
	}
	if t.requests.set(n, at) {
		t.pokeKeeper()
	}
}

// backOff doubles the pause between requests, and returns the time of the next.
func (n *neighbour) backOff(now time.Time) time.Time {
	longest := kickLast
	if n.mac != 0 {
		longest = kickKnown
	}
	n.pause = min(max(2*n.pause, kickFirst), longest)
	return now.Add(n.pause)
}

// kickDue sends the due requests and returns the time until the next.
func (t *Table) kickDue(now time.Time) time.Duration {
	t.mu.Lock()
	var due []netip.Addr
	for n := t.requests.due(now); n != nil; n = t.requests.due(now) {
		due = append(due, n.addr)
		t.requests.set(n, n.following(now))
	}
	next := t.requests.sleep(t.nextLookup())
	t.mu.Unlock()
	for _, addr := range due {
		t.kick(addr)
	}
	return time.Until(next)
}

// following returns the time of the request after one at time now, for the case that no message comes before.
func (n *neighbour) following(now time.Time) time.Time {
	if n.listed {
		return now.Add(refresh)
	}
	return n.backOff(now)
}

// kick marks a neighbour as used. The kernel then creates, resolves or probes its entry, as needed. kick ignores errors
// (the interface is down), because the next request follows.
//
// System calls: sendto, recvfrom (netlink), or sendto on an IPv6 socket.
func (t *Table) kick(addr netip.Addr) {
	if !t.iface.Load().canSolicit(addr) {
		t.solicitor.solicit(addr)
		return
	}
	_ = t.handle.NeighSet(&netlink.Neigh{
		LinkIndex: t.index,
		IP:        addr.AsSlice(),
		Flags:     netlink.NTF_USE,
	})
}

// readNeighbours reads the kernel's whole neighbour table of this interface.
func (t *Table) readNeighbours() error {
	list, err := t.handle.NeighList(t.index, 0)
	if err != nil {
		return fmt.Errorf("route: list neighbours of %s: %w", t.Interface().Name, err)
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.seen)
	for i := range list {
		t.sight(&list[i], false, now)
	}
	t.macs.retain(func(addr netip.Addr) bool { _, ok := t.seen[addr]; return ok })
	for addr, n := range t.neighbours {
		if _, ok := t.seen[addr]; !ok {
			t.note(addr, sighting{})
			t.follow(n, sighting{}, now)
		}
	}
	return nil
}
