package labtest

import (
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// SetNeighbour adds a permanent neighbour entry to an interface of the calling thread's namespace. The kernel then
// sends no request for this neighbour.
func SetNeighbour(name string, addr netip.Addr, mac net.HardwareAddr) error {
	return setNeighbour(name, addr, mac, netlink.NUD_PERMANENT)
}

// SetStaleNeighbour adds a neighbour entry to an interface of the calling thread's namespace. The kernel confirms the
// entry when it is used.
func SetStaleNeighbour(name string, addr netip.Addr, mac net.HardwareAddr) error {
	return setNeighbour(name, addr, mac, netlink.NUD_STALE)
}

func setNeighbour(name string, addr netip.Addr, mac net.HardwareAddr, state int) error {
	return onLink(name, func(l netlink.Link) error {
		return netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: addr.AsSlice(), HardwareAddr: mac, State: state})
	})
}

// ForgetNeighbour deletes a neighbour from the table of an interface of the calling thread's namespace.
func ForgetNeighbour(name string, addr netip.Addr) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.NeighDel(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: addr.AsSlice()})
}

// CountNeighbours returns the number of unicast entries in the neighbour table of an interface. The interface is in the
// calling thread's namespace.
func CountNeighbours(name string) (int, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return 0, err
	}
	list, err := netlink.NeighList(l.Attrs().Index, 0)
	list = slices.DeleteFunc(list, func(n netlink.Neigh) bool { return n.IP.IsMulticast() })
	return len(list), err
}
