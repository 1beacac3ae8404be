package wire

import "net/netip"

// Backlog bounds the connection requests that wait for the consumer, and divides their places among the addresses that
// they come from. An address may have backlogShare times as many as are free and its network backlogPrefix times as many, so
// that an address without a waiting request finds a place beside one that fills the backlog. Few enough places, 7 or
// less, all go to one address.
//
// It has no lock: the caller holds one, and gives back every place that it took.
type Backlog struct{ quota quota }

// NewBacklog makes a backlog of n requests.
func NewBacklog(n int) *Backlog { return &Backlog{newQuota(n, backlogShare, backlogPrefix)} }

// Take takes a place for a request from an address; false when the address or its network has its share.
func (b *Backlog) Take(from netip.Addr) bool {
	if !b.quota.room(from) {
		return false
	}
	b.quota.take(from)
	return true
}

// Give gives back a place that was taken for an address.
func (b *Backlog) Give(from netip.Addr) { b.quota.give(from) }

// Resize changes the number of places. What was taken stays taken.
func (b *Backlog) Resize(n int) { b.quota.places = n }
