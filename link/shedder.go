package link

import "net/netip"

// Shedder is implemented by a Link that can make the kernel drop packets before they are received, so that a flood from
// one address does not fill the receive buffer.
//
// A link that wraps another link must forward the call.
type Shedder interface {
	// Shed drops received packets from an address whose UDP payload begins with a byte that equals value in the bits of
	// mask. It replaces an earlier rule; an address that is not valid removes it. Only the owner may call it.
	Shed(from netip.Addr, value, mask byte)
}
