package doctor

import (
	"slices"

	"github.com/vishvananda/netlink"
)

// table lists every check, in the order in which the checks run and are shown. The order matters, because a check may
// use the facts of an earlier one.
func table() []check {
	return slices.Concat(hostChecks(), interfaceChecks(), peerChecks())
}

func hostChecks() []check {
	return []check{
		{"kernel", "the kernel's version, and what newer ones add", scopeHost, true, checkKernel},
		{"af-xdp", "whether the kernel has AF_XDP sockets", scopeHost, true, checkAFXDP},
		{"mounts", "whether the files of the kernel are there that opening reads", scopeHost, true, checkMounts},
		{"bpf-jit", "whether BPF programs are compiled", scopeHost, true, checkJIT},
		{"cpus", "how many processors there are, and how their clock is governed", scopeHost, false, checkCPUs},
		{"load", "whether other work leaves a core to poll on", scopeHost, false, checkLoad},

		{"capabilities", "what this process may do", scopeProcess, true, checkCapabilities},
		{"bpf", "whether the kernel lets this process load XDP programs", scopeProcess, true, checkBPF},
		{"security", "whether an adapter would be in secure mode: keys, peers, key log", scopeProcess, false, checkSecurity},
	}
}

func interfaceChecks() []check {
	return []check{
		{"interface", "whether the interface, or the address, is there", scopeInterface, false, checkInterface},
		{"up", "whether the interface is up", scopeInterface, false, checkUp},
		{"carrier", "whether there is something at the other end of its cable", scopeInterface, false, checkCarrier},
		{"address", "whether it has an address to be known by", scopeInterface, false, checkAddress},
		{"driver", "which modes its driver grants", scopeInterface, true, checkDriver},
		{"mtu", "whether its MTU suits the driver and the protocol", scopeInterface, false, checkMTU},
		{"queues", "how many queues it has, and whether packets spread over them", scopeInterface, true, checkQueues},
		{"memlock", "whether this process may lock the memory that the queues take", scopeInterface, true, checkMemlock},
		{"memory-limit", "whether the container or the service has the memory that the queues take", scopeInterface, true, checkMemoryLimit},
		{"descriptors", "whether this process may open the files that the adapter takes", scopeInterface, true, checkDescriptors},
		{"rings", "how many packets its rings hold", scopeInterface, true, checkRings},
		{"offloads", "whether the device merges packets", scopeInterface, true, checkOffloads},
		{"layer", "whether AF_XDP works over such an interface: VLAN, bond, macvlan, tunnel, a part of a bridge", scopeInterface, true, checkLayer},
		{"xdp-program", "whether it has an XDP program already", scopeInterface, true, checkProgram},
		{"queue-holder", "whether another AF_XDP socket has a queue of it", scopeInterface, true, checkHolders},
		{"buffers", "how much the kernel holds for a UDP socket", scopeInterface, false, checkBuffers},
		{"filters", "whether the kernel filters what comes to a UDP socket", scopeInterface, false, checkFilters},
		{"port", "whether another program has the UDP port", scopeInterface, false, checkPort},
		{"try", "what is granted when the adapter is opened, with --try", scopeInterface, false, checkTry},
		{"other-traffic", "what an XDP program costs the other traffic of the interface", scopeInterface, true, checkTraffic},
		{"share", "what rate an adapter gets beside TCP", scopeInterface, false, checkShare},
	}
}

func peerChecks() []check {
	return []check{
		{"route", "whether a route leads to the peer through the interface", scopePeer, false, checkRoute},
		{"neighbour", "whether the next hop's Ethernet address is known", scopePeer, false, checkNeighbour},
		{"reach", "whether an adapter answers at the peer", scopePeer, false, checkReach},
		{"path-mtu", "which packets fit through to the peer", scopePeer, false, checkPathMTU},
	}
}

// reaches reports whether the object of a check exists. For example, there is nothing to check on an interface that was
// not found, or behind a missing route.
func (x *exam) reaches(c check) bool {
	switch {
	case c.scope == scopeInterface && c.name != "interface":
		return x.link != nil
	case c.scope == scopePeer:
		return x.Peer.IsValid() && x.link != nil && x.usable() &&
			(c.name == "route" || x.routed) && (c.name == "route" || c.name == "neighbour" || x.linked)
	case c.scope == scopeInterface:
		return !x.HostOnly
	}
	return true
}

// usable reports whether the interface can transmit at all.
func (x *exam) usable() bool {
	a := x.link.Attrs()
	return isUp(a) && a.OperState != netlink.OperDown && a.OperState != netlink.OperLowerLayerDown && x.serves()
}
