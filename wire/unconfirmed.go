package wire

import (
	"container/list"
	"net/netip"
)

// unconfirmed holds the accepted requests that their requesters have not confirmed. It has a list for each address, a
// list for each network, and a list of all requests, each with the oldest request first. An honest requester confirms
// within a round trip. If an address or a network has used up its share of half-open requests, a new request from there
// evicts the oldest request of that address or network, as in the SYN cache of FreeBSD. If the requests of many
// networks fill the table, a new request evicts the oldest request of all. So a flood evicts an honest request only
// after the flood has filled the share or the table once, and the honest requester has that much time to confirm.
type unconfirmed map[netip.Prefix]*list.List

// everyone is the key of the list of all requests.
var everyone netip.Prefix

// lists returns the keys of the lists that hold a request.
func (r *Request) lists() [3]netip.Prefix {
	addr, network := holders(addressOf(r.From.Addr()))
	return [...]netip.Prefix{addr, network, everyone}
}

// add appends an accepted request to its lists.
func (u unconfirmed) add(r *Request) {
	for i, k := range r.lists() {
		l := u[k]
		if l == nil {
			l = list.New()
			u[k] = l
		}
		r.places[i] = l.PushBack(r)
	}
}

// remove takes a request out of its lists, if it is in them.
func (u unconfirmed) remove(r *Request) {
	if r.places[0] == nil {
		return
	}
	for i, k := range r.lists() {
		l := u[k]
		if l.Remove(r.places[i]); l.Len() == 0 {
			delete(u, k)
		}
		r.places[i] = nil
	}
}

// oldest returns the oldest request of an address, of a network, or of everyone. It returns nil if there is none.
func (u unconfirmed) oldest(holder netip.Prefix) *Request {
	if l := u[holder]; l != nil {
		return l.Front().Value.(*Request)
	}
	return nil
}

// admit reports whether an address may have one more half-open request. If the address or its network has reached its
// threshold, admit evicts the oldest unconfirmed request of that address or network. If an address without a request has
// reached it, the table is full, and admit evicts the oldest unconfirmed request of its network. If the network has no
// request either, admit evicts the oldest unconfirmed request of all. A request younger than confirmTime is not evicted;
// admit then returns false. The evicted requester gets no notice; its next packet is answered with Reset.
func (e *Engine) admit(a netip.Addr) bool {
	for range 2 { // evict for the address, then for the network
		full, ok := e.halfOpen.holderAtLimit(a)
		if !ok {
			return true
		}
		if _, network := holders(addressOf(a)); e.halfOpen.held[full] == 0 {
			if full = network; e.halfOpen.held[network] == 0 {
				full = everyone
			}
		}
		r := e.unconfirmed.oldest(full)
		if r == nil || e.now.Sub(r.conn.openedAt) < confirmTime {
			return false
		}
		r.conn.end(KindAcceptFailed, StatusFlushed)
	}
	_, ok := e.halfOpen.holderAtLimit(a)
	return !ok
}
