package wire

import "net/netip"

// Backlog bounds the connection requests that wait for the consumer. It divides its places among addresses and networks
// (see quota): an address may hold at most backlogShare (7) times as many places as are free. So an address that sends
// many requests leaves a place for another address. An exception is a backlog of 7 places or fewer, which one address
// can fill.
type Backlog struct{ quota quota }

// NewBacklog makes a backlog of n requests.
func NewBacklog(n int) *Backlog { return &Backlog{newQuota(n, backlogShare, backlogPrefix)} }

// Take reserves a place for a request from an address. It reports false if the share of the address or of its
// network is used up.
func (b *Backlog) Take(from netip.Addr) bool {
	if !b.quota.hasPlace(from) {
		return false
	}
	b.quota.addPlace(from)
	return true
}

// Give returns a place that Take reserved for an address.
func (b *Backlog) Give(from netip.Addr) { b.quota.freePlace(from) }

// Resize sets the number of places to n. Places that are reserved stay reserved, even if they exceed n.
func (b *Backlog) Resize(n int) { b.quota.places = n }
