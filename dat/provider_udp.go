package dat

import (
	"log/slog"
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/udplink"
)

// openUDP opens a UDP socket on an address of this host.
func openUDP(addr netip.Addr, o Options) (device, error) {
	uo := udplink.DefaultOptions()
	uo.Port, uo.NoOffload = o.Port, o.NoOffload
	l, err := udplink.Open(addr, uo)
	if err != nil {
		return device{}, err
	}
	dev := device{links: []link.Link{l}, watch: func(a *adapter) {
		l.Watch(&deviceObserver{a: a, logger: o.warner(), kind: "address", name: addr.String})
	}}
	if o.Port == 0 && l.Local().Port() != DefaultPort {
		dev.portPicked = true
		dev.logLine = logLine{o.logger(), slog.LevelWarn, "dat: another process has the default UDP port, peers have to use this port", []any{
			"address", addr, "port", l.Local().Port()}}
	}
	return dev, nil
}
