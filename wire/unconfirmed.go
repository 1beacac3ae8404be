package wire

import (
	"container/list"
	"net/netip"
)

// unconfirmed lists accepted requests that the requester has not confirmed, by address and by network, oldest first. An
// honest requester confirms within a round trip. If an address or a network has used up its share of half-open
// requests, a new request from there evicts the oldest unconfirmed one (see SYN cache of FreeBSD). So during a flood
// from the same network, an honest requester still has time to confirm: as long as the flood takes to fill the share
// once.
type unconfirmed map[netip.Prefix]*list.List

// listed is the position of a request in one list.
type listed struct {
	holder netip.Prefix
	at     *list.Element
}

// add appends an accepted request to the lists of its address and network.
func (u unconfirmed) add(r *Request) {
	addr, network := holders(addressOf(r.From.Addr()))
	for i, k := range [...]netip.Prefix{addr, network} {
		l := u[k]
		if l == nil {
			l = list.New()
			u[k] = l
		}
		r.places[i] = listed{k, l.PushBack(r)}
	}
}

// remove takes a request out of its lists, if it is in them.
func (u unconfirmed) remove(r *Request) {
	for i, p := range r.places {
		if p.at == nil {
			continue
		}
		l := u[p.holder]
		if l.Remove(p.at); l.Len() == 0 {
			delete(u, p.holder)
		}
		r.places[i] = listed{}
	}
}

// oldest returns the oldest request of an address or network, or nil.
func (u unconfirmed) oldest(holder netip.Prefix) *Request {
	if l := u[holder]; l != nil {
		return l.Front().Value.(*Request)
	}
	return nil
}

// admit reports whether an address may have one more half-open request. If the address or its network has used up its
// share, admit evicts the oldest unconfirmed request from there, unless that request is younger than confirmTime. The
// evicted requester gets no notice; its next packet is answered with Reset.
func (e *Engine) admit(a netip.Addr) bool {
	for range 2 { // evict for the address, then for the network
		full, ok := e.halfOpen.full(a)
		if !ok {
			return true
		}
		r := e.unconfirmed.oldest(full)
		if r == nil || e.now.Sub(r.conn.opened) < confirmTime {
			return false
		}
		r.conn.end(KindAcceptFailed, StatusFlushed)
	}
	_, ok := e.halfOpen.full(a)
	return !ok
}
