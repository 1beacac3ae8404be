package link

import "net/netip"

// Originator is implemented by a Link that receives on several addresses of this host.
//
// A link that wraps another link must forward this call.
type Originator interface {
	// Origin returns the address of this host from which packets on a path leave. The result is not valid for a released
	// path. Any goroutine may call it.
	Origin(Path) netip.Addr
}
