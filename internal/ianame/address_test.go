package ianame

import (
	"net"
	"net/netip"
	"testing"
)

// TestOnAddress: the name of an interface becomes one of its addresses, and other names stay.
func TestOnAddress(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		t.Skip("the host has no interface")
	}
	for _, ifi := range all {
		want, err := InterfaceAddr(ifi.Name)
		if err != nil {
			continue // it has no address
		}
		n, err := Parse("udp:" + ifi.Name + " port=4000")
		if err != nil {
			t.Fatal(err)
		}
		if n, err = n.OnAddress(); err != nil || n != (Name{Device: "udp:" + want.String(), Kind: UDP, Addr: want, Port: 4000}) {
			t.Errorf("%s: %+v, %v", ifi.Name, n, err)
		}
	}
	for _, name := range []Name{{Device: "xdp:none0", Kind: XDP, Interface: "none0"}, {Device: "udp:::1", Kind: UDP, Addr: netip.IPv6Loopback()}} {
		if n, err := name.OnAddress(); err != nil || n != name {
			t.Errorf("%+v, %v", n, err)
		}
	}
	if _, err := (Name{Device: "udp:none0", Kind: UDP, Interface: "none0"}).OnAddress(); err == nil {
		t.Error("an interface that does not exist has an address")
	}
}
