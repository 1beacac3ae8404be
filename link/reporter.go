package link

import "net/netip"

// QuoteSize is the largest number of quoted bytes in a Report. These bytes contain the protocol's header and, in a
// connection request, the fields that identify the connection.
const QuoteSize = 40

// Refusal is the reason why a packet did not arrive.
type Refusal uint8

const (
	RefusedPort   Refusal = iota // no program listens on the UDP port
	RefusedHost                  // the host is unreachable; over IPv4 also: a filter refuses the packet
	RefusedNet                   // there is no route to the network
	RefusedPolicy                // IPv6: a filter or a route prohibits the packet
)

// Report says that a packet of ours did not arrive, and why. It comes from ICMP destination unreachable (RFC 792,
// RFC 4443), or from the link itself if the neighbour of the path does not answer. Any host that knows the addresses can
// forge ICMP, but only a host that has seen the packet can quote it.
type Report struct {
	To    netip.AddrPort // destination of the packet
	Why   Refusal
	Size  int // bytes used in Quote
	Quote [QuoteSize]byte
}

// Quoted returns the quoted beginning of the packet's UDP payload.
func (r *Report) Quoted() []byte { return r.Quote[:max(0, min(r.Size, QuoteSize))] }

// SetQuoted stores the beginning of a UDP payload.
func (r *Report) SetQuoted(b []byte) { r.Size = copy(r.Quote[:], b) }

// Refusal4 returns the reason for a code of ICMP destination unreachable. ok is false for a code that says nothing about
// the destination: the packet was too large. The reasons are those for which connect(2) of Linux returns ECONNREFUSED,
// EHOSTUNREACH and ENETUNREACH.
func Refusal4(code byte) (why Refusal, ok bool) {
	switch code {
	case 3:
		return RefusedPort, true
	case 4: // fragmentation needed
		return 0, false
	case 0, 6, 9, 11: // network unreachable, unknown, prohibited, and for this type of service
		return RefusedNet, true
	}
	return RefusedHost, true
}

// Refusal6 returns the reason for a code of ICMPv6 destination unreachable.
func Refusal6(code byte) Refusal {
	switch code {
	case 0: // no route to destination
		return RefusedNet
	case 1, 5, 6: // prohibited, policy of the source address, reject route
		return RefusedPolicy
	case 4:
		return RefusedPort
	}
	return RefusedHost
}

// Reporter is implemented by a Link that can report packets that did not arrive. A report goes to the link that sent the
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
