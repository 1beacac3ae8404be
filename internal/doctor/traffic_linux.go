package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
)

// measureTraffic measures the costs for other traffic over a veth of this host.
const measureTraffic = "datbench links"

// checkTraffic says what an attached XDP program costs the other traffic of the interface. The figures are of the
// reference host; docs/LINKS.md has the table.
func checkTraffic(_ context.Context, x *exam) []Finding {
	const instead = "if that is too much, use kernel UDP (udp:ADDRESS), which costs other traffic nothing"
	switch mode := x.expected(); {
	case x.stopped != "" || x.fallback != "":
		return nil // nothing will be attached
	case mode == "generic mode":
		return x.traffic("in generic mode the kernel copies a received packet of several pieces into one, and a NIC merges no packets (LRO, GRO_HW)",
			"Over a veth at MTU 1500, three quarters of kernel TCP's 17 Gb/s were left on the reference host.", instead, measureTraffic)
	case x.driver == "veth":
		return x.traffic("an XDP program switches segmentation offload off at the other end of the veth pair",
			"TCP from there sends packets of the MTU: at MTU 1500, with a program at both ends, a fifth of its 17 Gb/s was left on the reference host.",
			instead+", or generic mode, which left three quarters", measureTraffic)
	default:
		return x.traffic(fmt.Sprintf("with an XDP program %s carries %s and merges no packets that arrive (LRO, GRO_HW)", x.driverName(), x.carries()),
			"The kernel receives each packet of other traffic by itself. Many drivers recreate their queues when the program is attached or detached, and drop packets meanwhile.",
			instead, "")
	}
}

// traffic returns the finding about other traffic, with the offloads that were off while Try had the adapter open.
func (x *exam) traffic(found, means, fix, command string) []Finding {
	if len(x.lost) > 0 {
		found += "; while it was open these offloads were off: " + strings.Join(x.lost, ", ")
	}
	return []Finding{{Severity: Info, Found: found, Means: means, Fix: fix, Command: command}}
}

// checkShare says what share of a switch's queue an adapter gets beside TCP. It says so of NICs only: a veth or loopback
// has no such queue.
func checkShare(_ context.Context, x *exam) []Finding {
	if x.stopped != "" || x.link.Type() == "veth" || x.link.Attrs().Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 {
		return nil
	}
	return []Finding{{Severity: Info, Found: "beside bulk TCP in one queue of a switch, a connection and TCP do not share the rate fairly",
		Fix: "where such TCP shares a port, give UDP port " + strconv.Itoa(int(x.Port)) + " a traffic class of its own on the switch: docs/LINKS.md, Beside TCP"}}
}

// carries returns the MTUs that the driver supports with an XDP program.
func (x *exam) carries() string {
	if x.manyFrames() && x.zeroCopy() && x.mostZeroCopy() == oneFrame {
		return fmt.Sprintf("any MTU in copy mode, up to %d in zero-copy mode,", oneFrame)
	}
	if x.manyFrames() {
		return "any MTU"
	}
	most, exact := x.mostNative()
	if exact {
		return fmt.Sprintf("an MTU up to %d", most)
	}
	return fmt.Sprintf("an MTU up to about %d", most)
}

// offloads returns the active features of an interface; nil if they cannot be read.
//
// System calls: ioctl(SIOCETHTOOL) of a socket.
func offloads(name string) (active []string) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil
	}
	defer e.Close()
	all, err := e.FeaturesWithState(name)
	if err != nil {
		return nil
	}
	for feature, state := range all {
		if state.Active {
			active = append(active, feature)
		}
	}
	return active
}

// missing returns the features that were active before and are not active now, in order.
func missing(before, now []string) []string {
	return slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(before), func(f string) bool { return slices.Contains(now, f) })))
}
