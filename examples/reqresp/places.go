package main

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/datxdp/datxdp/dat"
)

// places are what a server has for its clients, maxClients of them. One host has half of them at most, so that clients that
// connect and do nothing keep no other host out. If all are taken, a client that was accepted and has not taken its connection
// up makes room for one of a host with fewer clients. This file is the same in echo, kv and reqresp.
type places struct {
	taken  map[*dat.EP]*place
	hosts  map[netip.Addr]int // places of each host
	asking []*dat.EP          // whose connection is not established, the oldest first
}

// place is that of one client. A client that makes room keeps it until its last event is taken: events that are queued stay in the
// dispatcher when an endpoint is freed, and the dispatcher has room for the events of maxClients.
type place struct {
	host netip.Addr
	next *dat.CR // the request, of that host, that gets the place when the client has gone
}

var errFull = []byte("the server has as many clients as it takes")

func newPlaces() places { return places{taken: map[*dat.EP]*place{}, hosts: map[netip.Addr]int{}} }

// admit reports whether there is a place for the client that asks. If not, the request is rejected, or leave returns it later.
func (p *places) admit(cr *dat.CR) (host netip.Addr, ok bool, err error) {
	about, err := cr.Query()
	if err != nil {
		return host, false, errors.Join(err, cr.Reject(nil))
	}
	host = about.RemoteAddress
	switch {
	case p.hosts[host] >= maxClients/2:
		return host, false, cr.Reject(errFull)
	case len(p.taken) == maxClients:
		return host, false, p.replace(cr, host)
	}
	return host, true, nil
}

// replace disconnects a client whose connection is not established, the oldest of the host with the most places, and keeps the
// request for its place.
func (p *places) replace(cr *dat.CR, host netip.Addr) (err error) {
	most := func(a, b *dat.EP) int { return p.hosts[p.taken[a].host] - p.hosts[p.taken[b].host] }
	if len(p.asking) == 0 {
		return cr.Reject(errFull)
	}
	ep := slices.MaxFunc(p.asking, most)
	one := p.taken[ep]
	if p.hosts[host] >= p.hosts[one.host] {
		return cr.Reject(errFull)
	}
	if one.next != nil {
		err = one.next.Reject(errFull)
	}
	p.count(one.host, -1)
	p.count(host, 1)
	one.host, one.next = host, cr
	return errors.Join(err, ep.Disconnect(dat.CloseAbrupt))
}

func (p *places) count(host netip.Addr, n int) {
	if p.hosts[host] += n; p.hosts[host] == 0 {
		delete(p.hosts, host)
	}
}

// enter gives a place to a client that is accepted.
func (p *places) enter(ep *dat.EP, host netip.Addr) {
	p.taken[ep] = &place{host: host}
	p.count(host, 1)
	p.asking = append(p.asking, ep)
}

// settle records that the connection of a client is established.
func (p *places) settle(ep *dat.EP) {
	if one := p.taken[ep]; one != nil && one.next == nil {
		p.forget(ep)
	}
}

func (p *places) forget(ep *dat.EP) {
	p.asking = slices.DeleteFunc(p.asking, func(other *dat.EP) bool { return other == ep })
}

// leave frees the place of a client after its last event. It returns the request that waits for the place, or nil.
func (p *places) leave(ep *dat.EP) (next *dat.CR) {
	one := p.taken[ep]
	p.count(one.host, -1)
	delete(p.taken, ep)
	p.forget(ep)
	return one.next
}
