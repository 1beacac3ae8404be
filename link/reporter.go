package link

import "net/netip"

// QuoteSize is how many bytes of a packet a Report has at most: the protocol's header, and what follows in a
// request for a connection to tell whose it is.
const QuoteSize = 40

// Report says that a packet of ours met a host where nothing listens at its port: ICMP destination unreachable,
// code port unreachable (RFC 792, RFC 4443). Anybody who knows the addresses can forge such a message, but only a
// host that has seen the packet can quote it.
type Report struct {
	To    netip.AddrPort // where the packet went
	Size  int            // of Quote, in bytes
	Quote [QuoteSize]byte
}

// Quoted is the beginning of the packet's UDP payload, as much of it as the message quotes.
func (r *Report) Quoted() []byte { return r.Quote[:max(0, min(r.Size, QuoteSize))] }

// SetQuoted keeps the beginning of a UDP payload.
func (r *Report) SetQuoted(b []byte) { r.Size = copy(r.Quote[:], b) }

// Reporter is implemented by a Link that learns of ports without a listener. Reports go to the link that sent the
// packet; a link that cannot tell reports to all links of its device.
//
// A link that passes the calls of a link below on to it passes these on too.
type Reporter interface {
	// Refused fills to with reports and returns how many it filled. It is the owner's call, costs next to
	// nothing when there are none, and makes no system call then. A link may drop reports beyond a bound.
	// Wait returns when there is one.
	Refused(to []Report) int

	// Destination is where packets on a path go; it is not valid for a path that was released. Any
	// goroutine may call it.
	Destination(Path) netip.AddrPort
}
