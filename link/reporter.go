package link

import "net/netip"

// Reporter is implemented by a Link that learns when a packet of its own met a host where nothing listens at
// its port: ICMP destination unreachable, code port unreachable (RFC 792, RFC 4443). Anybody who knows the
// addresses can forge such a message: it is a reason to ask the peer, not a proof.
//
// A link that passes the calls of a link below on to it passes these on too.
type Reporter interface {
	// Refused fills to with the destinations of such packets and returns how many it filled. It is the
	// owner's call, costs next to nothing when there are none, and makes no system call then. A link
	// may drop reports beyond a bound. Wait returns when there is one.
	Refused(to []netip.AddrPort) int

	// Destination is where packets on a path go; it is not valid for a path that was released. Any
	// goroutine may call it.
	Destination(Path) netip.AddrPort
}
