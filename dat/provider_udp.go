package dat

import (
	"fmt"
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/udplink"
)

// openUDP opens an address of this host, given as a literal.
func openUDP(what string, o Options) (device, error) {
	addr, err := netip.ParseAddr(what)
	if err != nil {
		return device{}, fmt.Errorf("%w: %q is not an IP address of this host", ErrInvalidParameter, what)
	}
	if addr.IsUnspecified() || addr.IsMulticast() {
		return device{}, fmt.Errorf("%w: a link needs one address of this host, %v is a wildcard or a group", ErrInvalidParameter, addr)
	}
	uo := udplink.DefaultOptions()
	uo.Port = o.Port
	l, err := udplink.Open(addr, uo)
	if err != nil {
		return device{}, err
	}
	return device{links: []link.Link{l}}, nil
}
