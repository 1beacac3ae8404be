package link

import "net/netip"

// QuoteSize is the largest number of quoted bytes in a Report. These bytes contain the protocol's header and, in a
// connection request, the fields that identify the connection.
const QuoteSize = 40

// Report says that no program listens on the UDP port to which a packet of ours was sent. It comes from ICMP
// destination unreachable, code port unreachable (RFC 792, RFC 4443). Any host that knows the addresses can forge this
// message, but only a host that has seen the packet can quote it.
type Report struct {
	To    netip.AddrPort // destination of the packet
	Size  int            // bytes used in Quote
	Quote [QuoteSize]byte
}

// Quoted returns the quoted beginning of the packet's UDP payload.
func (r *Report) Quoted() []byte { return r.Quote[:max(0, min(r.Size, QuoteSize))] }

// SetQuoted stores the beginning of a UDP payload.
func (r *Report) SetQuoted(b []byte) { r.Size = copy(r.Quote[:], b) }

// Reporter is implemented by a Link that can report ports without a listener. A report goes to the link that sent the
// packet. If that link is unknown, the report goes to all links of the device.
//
// A link that wraps another link must forward these calls.
type Reporter interface {
	// Refused fills reports with new reports and returns their number. Only the owner may call it. Without new reports
	// it costs almost nothing and makes no system call. A link may drop reports beyond a limit. A new report ends Wait.
	Refused(reports []Report) int

	// Destination returns the address and port to which packets on a path go. The result is not valid for a released
	// path. Any goroutine may call it.
	Destination(Path) netip.AddrPort
}
