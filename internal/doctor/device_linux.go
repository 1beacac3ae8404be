package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/safchain/ethtool"

	"github.com/datxdp/datxdp/internal/driver"
	"github.com/datxdp/datxdp/xdp"
)

// withEthtool calls ask with an ethtool handle; it returns nil if there is none.
func withEthtool(ask func(*ethtool.Ethtool) []Finding) []Finding {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil
	}
	defer e.Close()
	return ask(e)
}

func checkQueues(_ context.Context, x *exam) []Finding {
	c := x.channels
	rx, tx := x.queues(), int(c.TxCount+c.CombinedCount)
	n := cmp.Or(x.maxQueues, rx)
	if n <= rx && n > tx {
		return failure(fmt.Sprintf("%s receives on %s and sends on %d", x.name(), plural(rx, "queue"), tx),
			"An adapter needs a queue to send on for each that it receives on.", "make them equal",
			as(fmt.Sprintf("ethtool -L %s %s", x.name(), equalQueues(c))))
	}
	if err := xdp.CheckQueues(x.name(), x.options()); err != nil {
		return failure(strings.TrimPrefix(err.Error(), "xdp: "), "The adapter does not open.", "do what this says, or use kernel UDP (udp:ADDRESS)", "")
	}
	if n := x.grows(); n > 0 {
		return failure(fmt.Sprintf("%s adds %s when an XDP program is attached", x.driverName(), plural(n, "queue")),
			"It keeps them for itself: AF_XDP cannot send on them.", "leave it no room for more",
			as(fmt.Sprintf("ethtool -L %s combined %d", x.name(), int(c.MaxCombined)-n+1)))
	}
	switch {
	case n < rx:
		return ok("a socket and an engine on %d of %s", n, plural(rx, "queue"))
	case rx == 1:
		return ok("1 queue")
	}
	return ok("%s: a socket and an engine on each%s", plural(rx, "queue"), x.spread())
}

// grows returns the number of queues that virtio_net adds for XDP: one per processor, or 0 if there is no room for all.
func (x *exam) grows() int {
	n := processors()
	if x.driver != driver.VirtioNet || x.mode == "generic" || n == 0 || x.channels.CombinedCount+uint32(n) > x.channels.MaxCombined {
		return 0
	}
	return n
}

// processors returns the number of possible processors; 0 if it cannot be read.
func processors() int {
	var first, last int
	text := readLine("/sys/devices/system/cpu/possible")
	if n, _ := fmt.Sscanf(text, "%d-%d", &first, &last); n == 0 { // as in "0-3", or "0"
		return 0
	}
	return max(first, last) + 1
}

// equalQueues returns the arguments of ethtool -L for equal numbers of receive and transmit queues.
func equalQueues(c ethtool.Channels) string {
	if c.TxCount == 0 || c.RxCount == 0 {
		return fmt.Sprintf("combined %d rx 0 tx 0", max(c.CombinedCount, 1))
	}
	n := min(c.RxCount, c.TxCount)
	return fmt.Sprintf("rx %d tx %d", n, n)
}

// spread says over how many queues the device spreads packets, if the driver reports it.
func (x *exam) spread() string {
	var spread string
	withEthtool(func(e *ethtool.Ethtool) []Finding {
		t, err := e.GetIndir(x.name())
		if err != nil || t.Size == 0 || int(t.Size) > len(t.RingIndex) {
			return nil
		}
		used := slices.Compact(slices.Sorted(slices.Values(t.RingIndex[:t.Size])))
		spread = fmt.Sprintf("; RSS spreads over %d of them", len(used))
		return nil
	})
	return spread
}

// fewSlots is the size of a receive ring that one burst fills.
const fewSlots = 512

func checkRings(_ context.Context, x *exam) []Finding {
	return withEthtool(func(e *ethtool.Ethtool) []Finding {
		r, err := e.GetRing(x.name())
		switch {
		case err != nil || r.RxMaxPending == 0:
			return nil // the ring size cannot be set
		case r.RxPending < fewSlots && r.RxPending < r.RxMaxPending:
			return []Finding{{Severity: Info, Found: fmt.Sprintf("rings of %d slots to receive, %d to send; %d and %d are possible",
				r.RxPending, r.TxPending, r.RxMaxPending, r.TxMaxPending), Means: "A burst that is longer is dropped by the device.",
				Fix: "make them larger if drops are counted", Command: as(fmt.Sprintf("ethtool -G %s rx %d", x.name(), r.RxMaxPending))}}
		}
		return ok("rings of %d slots to receive, %d to send", r.RxPending, r.TxPending)
	})
}

// merging are the offloads that merge packets before XDP sees them, with their names in ethtool -k and ethtool -K.
var merging = []struct{ feature, flag string }{
	{"rx-lro", "lro"}, {"rx-gro-hw", "rx-gro-hw"},
}

func checkOffloads(_ context.Context, x *exam) []Finding {
	return withEthtool(func(e *ethtool.Ethtool) []Finding {
		have, err := e.FeaturesWithState(x.name())
		if err != nil {
			return nil
		}
		var on, off []string
		for _, m := range merging {
			if have[m.feature].Active {
				on, off = append(on, m.flag), append(off, m.flag+" off")
			}
		}
		if len(on) == 0 {
			return ok("the device merges no packets (LRO, GRO_HW)")
		}
		return warning("the device merges packets: "+strings.Join(on, ", "), "Some drivers refuse XDP with it, others drop what was merged.",
			"switch it off", as(fmt.Sprintf("ethtool -K %s %s", x.name(), strings.Join(off, " "))))
	})
}
