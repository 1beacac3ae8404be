package wire

import "net/netip"

// quota divides places among addresses by dynamic thresholds (Choudhury and Hahne, "Dynamic Queue Length Thresholds for
// Shared-Memory Packet Switches", 1998). An address may hold a fixed multiple of the number of free places. So a single
// address gets many places, each of a thousand addresses gets few, and some places always stay free for a new address.
//
// The network of an address has a threshold too, because one IPv6 host may use every address of a /64. The multiple for
// a network is larger than the multiple for an address. For the first place of an address, the threshold of the network
// is multiplied by newcomerFactor. So a host with few addresses cannot keep other hosts of its network from getting a
// place. If only one place is free, the threshold is not multiplied. So a host that uses every address of a network
// leaves a place for other networks.
type quota struct {
	places       int
	used         int
	addr, prefix float64 // thresholds of an address and of a network, as multiples of the free places
	held         map[netip.Prefix]int
}

func newQuota(places int, addr, prefix float64) quota {
	return quota{places: places, addr: addr, prefix: prefix, held: make(map[netip.Prefix]int)}
}

// holders returns the keys of an address and of its network in quota.held.
func holders(a netip.Addr) (addr, network netip.Prefix) {
	bits := prefix4
	if a.Is6() {
		bits = prefix6
	}
	network, _ = a.Prefix(bits) // fails only for an address with a zone
	return netip.PrefixFrom(a, a.BitLen()), network
}

// hasPlace reports whether an address may take another place.
func (q *quota) hasPlace(a netip.Addr) bool {
	_, full := q.holderAtLimit(a)
	return !full
}

// holderAtLimit reports whether address a may have no further place, because a itself or its network has reached its
// threshold. In that case, holder is the address or the network that has reached its threshold.
func (q *quota) holderAtLimit(a netip.Addr) (holder netip.Prefix, ok bool) {
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

// addPlace counts a place of an address.
func (q *quota) addPlace(a netip.Addr) {
	addr, network := holders(addressOf(a))
	q.used++
	q.held[addr]++
	q.held[network]++
}

// freePlace frees a place of an address.
func (q *quota) freePlace(a netip.Addr) {
	q.used--
	addr, network := holders(addressOf(a))
	for _, k := range [...]netip.Prefix{addr, network} {
		if q.held[k]--; q.held[k] == 0 {
			delete(q.held, k)
		}
	}
}
