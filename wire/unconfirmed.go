package wire

import (
	"container/list"
	"net/netip"
)

// unconfirmed are the requests that were accepted and whose requester has not confirmed that, by address and by network,
// the oldest first. An honest requester confirms within a round trip. Where an address or a network has its share of
// half-open requests, a new one takes the place of the oldest of these, as the SYN cache of FreeBSD does: under a flood
// each has the time in which the share is filled once, and an honest neighbour of the flood connects.
type unconfirmed map[netip.Prefix]*list.List

// listed is where a request stands in a list.
type listed struct {
	holder netip.Prefix
	at     *list.Element
}

// add puts a request that was accepted behind the others.
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

// remove takes a request out, if it is there.
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

// oldest is the oldest request of an address or network; nil if there is none.
func (u unconfirmed) oldest(holder netip.Prefix) *Request {
	if l := u[holder]; l != nil {
		return l.Front().Value.(*Request)
	}
	return nil
}

// admit reports whether an address may have one more half-open request, if need be in the place of an older one of it or
// of its network. That ends without a word: whoever asks for it still is answered by Reset.
func (e *Engine) admit(a netip.Addr) bool {
	for range 2 { // the address, and the network
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
