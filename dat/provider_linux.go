package dat

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/datxdp/datxdp/xdp"
)

// openXDP opens an interface, given as NAME or NAME,MODE.
func openXDP(what string, o Options) (device, error) {
	name, mode, _ := strings.Cut(what, ",")
	xo := xdp.DefaultOptions()
	xo.Port, xo.Queues, xo.Memory = cmp.Or(o.Port, DefaultPort), o.Queues, o.Memory
	if mode != "" {
		xo.Mode = xdp.Mode(mode)
	}
	dev, err := xdp.Open(name, xo)
	if err != nil {
		return device{}, err
	}
	d := device{links: dev.Links(), closer: dev, report: func() deviceStats { return xdpStats(dev) },
		watch: func(a *adapter) { dev.Watch(&keeper{a: a, log: o.warner(), name: dev.Name}) }}
	if why := dev.Refused(); why != nil {
		d.note = note{o.warner(), slog.LevelWarn, "dat: a better mode was refused", []any{"interface", name, "mode", dev.Mode(), "reason", why}}
	}
	return d, nil
}

// xdpStats reads what there is to know of a device beside its links.
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

// xdpCounters are the verdicts of the steering program.
func xdpCounters(dev *xdp.Device) []Counter {
	c, err := dev.Counters()
	if err != nil {
		return nil
	}
	return []Counter{{"redirected", c.Redirected}, {"passed_other", c.PassedOther},
		{"passed_no_socket", c.PassedNoSocket}, {"passed_fragment", c.PassedFragment},
		{"passed_options", c.PassedOptions}, {"passed_malformed", c.PassedMalformed}}
}

// openAuto opens an interface over AF_XDP, and over UDP where that cannot be had; it says so.
func openAuto(what string, o Options) (device, error) {
	dev, err := openXDP(what, o)
	if err == nil {
		return dev, nil
	}
	addr, aerr := firstAddress(what)
	if aerr != nil {
		return device{}, err
	}
	o.Port = cmp.Or(o.Port, DefaultPort) // another process with the interface has the port too, and is to be told of
	dev, uerr := openUDP(addr, o)
	if uerr != nil {
		return device{}, fmt.Errorf("%w; nor is AF_XDP to be had: %v", uerr, err)
	}
	dev.note = note{o.warner(), slog.LevelWarn, "dat: AF_XDP is not to be had, using UDP", []any{"interface", what, "address", addr, "reason", err}}
	return dev, nil
}

// firstAddress is the first usable address of an interface, IPv4 before IPv6.
func firstAddress(name string) (string, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return "", err
	}
	addrs, err := ifi.Addrs()
	if err != nil {
		return "", err
	}
	best := ""
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok || n.IP.IsLinkLocalUnicast():
		case n.IP.To4() != nil:
			return n.IP.String(), nil
		case best == "":
			best = n.IP.String()
		}
	}
	if best == "" {
		return "", fmt.Errorf("interface %s has no address", name)
	}
	return best, nil
}

// namespace tells network namespaces apart: an interface name means something only within one.
func namespace() string {
	ns, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return "?"
	}
	return ns
}
