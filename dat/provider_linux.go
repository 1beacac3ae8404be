package dat

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/xdp"
)

// openXDP opens an interface over AF_XDP.
func openXDP(n ianame.Name, o Options) (device, error) {
	xo := xdp.DefaultOptions()
	xo.Port, xo.Queues, xo.Memory = cmp.Or(o.Port, DefaultPort), o.Queues, o.Memory
	if n.Mode != "" {
		xo.Mode = xdp.Mode(n.Mode)
	}
	dev, err := xdp.Open(n.Interface, xo)
	if err != nil {
		return device{}, err
	}
	d := device{links: dev.Links(), closer: dev, zone: n.Interface, readStats: func() deviceStats { return xdpStats(dev) },
		watch: func(a *adapter) {
			dev.Watch(&deviceObserver{a: a, logger: o.warner(), kind: "interface", name: dev.Name})
		}}
	if why := dev.Refused(); why != nil {
		d.logLine = logLine{o.warner(), slog.LevelWarn, "dat: a better mode was refused", []any{"interface", n.Interface, "mode", dev.Mode(), "reason", why}}
	}
	return d, nil
}

// findInterface returns an error if there is no interface of this name. The error says what to write instead.
func findInterface(name string) error {
	_, err := xdp.FindInterface(name)
	return err
}

// xdpStats returns the counters of a device that are not in the statistics of its links.
func xdpStats(dev *xdp.Device) deviceStats {
	s := deviceStats{steering: xdpCounters(dev)}
	for q, sock := range dev.Sockets() {
		k := sock.KernelStats()
		stats := QueueStats{Queue: q, Kernel: []Counter{{"rx_dropped", k.RxDropped}, {"rx_ring_full", k.RxRingFull},
			{"rx_invalid_descs", k.RxInvalidDescs}, {"rx_fill_ring_empty_descs", k.FillRingEmpty},
			{"tx_invalid_descs", k.TxInvalidDescs}, {"tx_ring_empty_descs", k.TxRingEmptyDescs}}}
		h := sock.Health()
		stats.TxProven, stats.RxProven, stats.Stalled, stats.Stalls, stats.Reopens = h.TxProven, h.RxProven, h.Stalled, h.Stalls, h.Reopens
		for _, r := range sock.Rings() {
			stats.Rings = append(stats.Rings, RingStats(r))
		}
		s.queues = append(s.queues, stats)
	}
	return s
}

// xdpCounters returns the verdict counters of the steering program.
func xdpCounters(dev *xdp.Device) []Counter {
	c, err := dev.Counters()
	if err != nil {
		return nil
	}
	return []Counter{{"redirected", c.Redirected}, {"passed_other", c.PassedOther},
		{"passed_no_socket", c.PassedNoSocket}, {"passed_fragment", c.PassedFragment},
		{"passed_options", c.PassedOptions}, {"passed_malformed", c.PassedMalformed}}
}

// openAuto opens an interface over AF_XDP. If that fails, it opens the interface's address over UDP and logs a warning.
func openAuto(n ianame.Name, o Options) (device, error) {
	dev, err := openXDP(n, o)
	if err == nil {
		return dev, nil
	}
	addr, aerr := xdp.LocalAddr(n.Interface)
	if aerr != nil {
		return device{}, err
	}
	// If the port is in use, openUDP fails: the process that uses the interface over AF_XDP may use this port.
	o.Port = cmp.Or(o.Port, DefaultPort)
	dev, uerr := openUDP(addr, o)
	if uerr != nil {
		return device{}, fmt.Errorf("%w; AF_XDP is unavailable too: %v", uerr, err)
	}
	dev.logLine = logLine{o.warner(), slog.LevelWarn, "dat: AF_XDP is unavailable, using UDP", []any{"interface", n.Interface, "address", addr, "reason", err}}
	return dev, nil
}

// namespace returns an identifier of the network namespace. Interface names are unique only within a namespace.
func namespace() string {
	ns, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return "?"
	}
	return ns
}
