package wire

import "net/netip"

// quota divides places among the addresses that ask for them, by dynamic thresholds (Choudhury and Hahne,
// "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998): a holder may have as many as a
// fixed multiple of those that are free. One that is alone gets many, a crowd gets few each, and some are
// always free for an address that has none. The network of an address is a holder too, with a larger multiple, since
// one host may have every address of an IPv6 /64. An address that has no place is given its first one until its network
// has newcomers times its share, but not the last place: a host with few addresses does not keep its neighbours out, and
// one with all addresses of a network leaves places for other networks.
type quota struct {
	places       int
	used         int
	addr, prefix float64 // multiples
	held         map[netip.Prefix]int
}

func newQuota(places int, addr, prefix float64) quota {
	return quota{places: places, addr: addr, prefix: prefix, held: make(map[netip.Prefix]int)}
}

// holders are an address and its network, as the keys of held.
func holders(a netip.Addr) (addr, network netip.Prefix) {
	bits := prefix4
	if a.Is6() {
		bits = prefix6
	}
	network, _ = a.Prefix(bits) // of an address without a zone there is one
	return netip.PrefixFrom(a, a.BitLen()), network
}

// room reports whether an address may have one more place.
func (q *quota) room(a netip.Addr) bool {
	_, full := q.full(a)
	return !full
}

// full is what keeps an address from one more place, itself or its network; ok is false if nothing does.
func (q *quota) full(a netip.Addr) (holder netip.Prefix, ok bool) {
	addr, network := holders(addressOf(a))
	free := float64(q.places - q.used)
	share := q.prefix * free
	if q.held[addr] == 0 && free > 1 {
		share *= newcomerFactor
	}
	switch {
	case float64(q.held[addr]) >= q.addr*free:
		return addr, true
	case float64(q.held[network]) >= share:
		return network, true
	default:
		return netip.Prefix{}, false
	}
}

// take gives a place to an address.
func (q *quota) take(a netip.Addr) {
	addr, network := holders(addressOf(a))
	q.used++
	q.held[addr]++
	q.held[network]++
}

// give takes back a place that an address has.
func (q *quota) give(a netip.Addr) {
	q.used--
	addr, network := holders(addressOf(a))
	for _, k := range [...]netip.Prefix{addr, network} {
		if q.held[k]--; q.held[k] == 0 {
			delete(q.held, k)
		}
	}
}
