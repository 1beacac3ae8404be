package dat

import (
	"fmt"
	"log/slog"
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
	dev := device{links: []link.Link{l}}
	if o.Port == 0 && l.Local().Port() != DefaultPort {
		dev.note = note{o.logger(), slog.LevelWarn, "dat: another process has the default UDP port, peers have to name this one", []any{
			"address", addr, "port", l.Local().Port()}}
	}
	return dev, nil
}
