package dat

import (
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/udplink"
)

// openUDP opens an address of this host, given as a literal.
func openUDP(what string, o Options) (device, error) {
	addr, err := netip.ParseAddr(what)
	if err != nil {
		return device{}, fail(ErrInvalidParameter, "%q is not an IP address of this host", what)
	}
	uo := udplink.DefaultOptions()
	uo.Port = o.Port
	l, err := udplink.Open(addr, uo)
	if err != nil {
		return device{}, err
	}
	return device{links: []link.Link{l}}, nil
}
