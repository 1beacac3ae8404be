// Package places decides which clients a server accepts, and has the loop of a server. A server has a fixed number of
// places, one per client. echo, table and push use the package.
//
// A host may have as many places as are free (a dynamic threshold): one host gets half of the places, two get a third
// each. So idle clients of one or two hosts do not keep other hosts out. Those of seven hosts can take all of 64 places,
// because each host may have half of what the others have left. If all places are taken, a client of a host with fewer
// places replaces a client whose connection is not established.
//
// A Table belongs to the goroutine that handles the server's events.
package places

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/datxdp/datxdp/dat"
)

// Table holds the places of a server.
type Table struct {
	limit  int
	taken  map[*dat.EP]*place
	hosts  map[netip.Addr]int // number of places of each host
	asking []*dat.EP          // clients whose connection is not established, the oldest first
}

// place is the place of one client. A client that is replaced keeps its place until the server has taken its last
// event. The events of a freed endpoint stay in the dispatcher, which has room for the events of a fixed number of
// clients.
type place struct {
	host netip.Addr
	next *dat.CR // waiting request of that host, which gets the place when the client has left; nil if there is none
}

var errFull = []byte("the server has as many clients as it takes")

// New returns a table with the given number of places.
func New(limit int) *Table {
	return &Table{limit: limit, taken: map[*dat.EP]*place{}, hosts: map[netip.Addr]int{}}
}

// Len returns the number of places that are taken.
func (t *Table) Len() int { return len(t.taken) }

// Admit reports whether the requesting client gets a place, and returns its host. If it gets none, Admit has rejected
// the request, or a later Leave returns the request.
func (t *Table) Admit(cr *dat.CR) (host netip.Addr, ok bool, err error) {
	about, err := cr.Query()
	if err != nil {
		return host, false, errors.Join(err, cr.Reject(nil))
	}
	host = Host(about.RemoteAddress)
	switch n, free := t.hosts[host], t.limit-len(t.taken); {
	case free == 0:
		return host, false, t.replace(cr, host)
	case n > 0 && n >= free:
		return host, false, cr.Reject(errFull)
	}
	return host, true, nil
}

// Host returns the address that stands for all addresses of a host: an IPv6 host may have every address of a /64.
func Host(addr netip.Addr) netip.Addr {
	if p, err := addr.Prefix(64); err == nil && addr.Is6() {
		return p.Masked().Addr()
	}
	return addr
}

// replace disconnects a client whose connection is not established, and keeps the request for its place. It chooses the
// oldest such client of the host with the most places. If no host has more places than the requester's, it rejects the
// request.
func (t *Table) replace(cr *dat.CR, host netip.Addr) (err error) {
	if len(t.asking) == 0 {
		return cr.Reject(errFull)
	}
	ep := slices.MaxFunc(t.asking, func(a, b *dat.EP) int { return t.hosts[t.taken[a].host] - t.hosts[t.taken[b].host] })
	p := t.taken[ep]
	if t.hosts[host] >= t.hosts[p.host] {
		return cr.Reject(errFull)
	}
	if p.next != nil {
		err = p.next.Reject(errFull)
	}
	t.count(p.host, -1)
	t.count(host, 1)
	p.host, p.next = host, cr
	return errors.Join(err, ep.Disconnect(dat.CloseAbrupt))
}

func (t *Table) count(host netip.Addr, n int) {
	if t.hosts[host] += n; t.hosts[host] == 0 {
		delete(t.hosts, host)
	}
}

// Enter gives a place to a client that Admit has accepted.
func (t *Table) Enter(ep *dat.EP, host netip.Addr) {
	t.taken[ep] = &place{host: host}
	t.count(host, 1)
	t.asking = append(t.asking, ep)
}

// Settle records that the connection of a client is established.
func (t *Table) Settle(ep *dat.EP) {
	if p := t.taken[ep]; p != nil && p.next == nil {
		t.forget(ep)
	}
}

func (t *Table) forget(ep *dat.EP) {
	t.asking = slices.DeleteFunc(t.asking, func(other *dat.EP) bool { return other == ep })
}

// Leave frees the place of a client after its last event. It returns the request that waits for the place, or nil.
func (t *Table) Leave(ep *dat.EP) (next *dat.CR) {
	p := t.taken[ep]
	if p == nil {
		return nil
	}
	t.count(p.host, -1)
	delete(t.taken, ep)
	t.forget(ep)
	return p.next
}
