package ianame

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// maxInterface is the maximum size of an alternative name of an interface in bytes (ALTIFNAMSIZ-1 of Linux). Opening
// by such a name fails with an error that tells the real name.
const maxInterface = 127

// OnAddress returns the name with an address of the interface, if the name is udp:INTERFACE. So two names of one adapter
// are equal. Other names are returned as they are.
func (n Name) OnAddress() (Name, error) {
	if n.Kind != UDP || n.Interface == "" {
		return n, nil
	}
	addr, err := InterfaceAddr(n.Interface)
	if err != nil {
		return n, fmt.Errorf("%s needs an IP address or an interface of this host: %w", n.Device, err)
	}
	n.Device, n.Interface, n.Addr = "udp:"+addr.String(), "", addr
	return n, nil
}

// isInterface reports whether a text may be the name of an interface, and not a mistyped address. Digits and dots alone
// count as an interface only if there is one.
func isInterface(text string) bool {
	return len(text) <= maxInterface && !strings.ContainsAny(text, ":/") && (strings.Trim(text, "0123456789.") != "" || exists(text))
}

// exists reports whether this host has an interface.
func exists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

// InterfaceAddr returns the first IPv4 address of an interface or, if the interface has no IPv4 address, its first IPv6
// address. It ignores link-local addresses.
func InterfaceAddr(name string) (netip.Addr, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}, err
	}
	addrs, err := ifi.Addrs()
	if err != nil {
		return netip.Addr{}, err
	}
	var best netip.Addr
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		switch {
		case err != nil || p.Addr().IsLinkLocalUnicast():
		case p.Addr().Is4():
			return p.Addr(), nil
		case !best.IsValid():
			best = p.Addr()
		}
	}
	if !best.IsValid() {
		return netip.Addr{}, fmt.Errorf("interface %s has no address", name)
	}
	return best, nil
}
