package route

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// statePause is the interval at which AwaitAddress reads the state of a tentative address.
const statePause = 20 * time.Millisecond

// AwaitAddress waits while an address of this host is tentative, for at most limit. It returns nil when the address can
// be used. Otherwise the error matches ErrTentative, ErrDuplicate or ErrNoAddress. The zone is the name of an interface;
// without a zone the address may belong to any interface of the network namespace of the calling thread.
//
// System calls: socket, bind, sendto, recvfrom (netlink).
func AwaitAddress(addr netip.Addr, limit time.Duration) error {
	h, err := netlink.NewHandle(syscall.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("route: open netlink socket: %w", err)
	}
	defer h.Close()
	for deadline := time.Now().Add(limit); ; time.Sleep(statePause) {
		err := stateOf(h, addr)
		if err != ErrTentative || time.Now().After(deadline) {
			return err
		}
	}
}

// stateOf returns nil if an interface has the address and can use it, and otherwise the error of AwaitAddress.
func stateOf(h *netlink.Handle, addr netip.Addr) error {
	links, _ := h.LinkList() // an interrupted list is read again, or the address is not found
	state := ErrNoAddress
	for _, l := range links {
		if zone := addr.Zone(); zone != "" && zone != l.Attrs().Name {
			continue
		}
		list, err := listAddrs(h, l)
		if err != nil {
			continue
		}
		var i Interface
		for k := range list {
			i.addAddr(&list[k])
		}
		a := addr.WithZone("")
		switch {
		case slices.ContainsFunc(i.Addrs, func(p netip.Prefix) bool { return p.Addr() == a }):
			return nil
		case slices.Contains(i.Tentative, a):
			state = ErrTentative
		case slices.Contains(i.Duplicate, a):
			state = ErrDuplicate
		}
	}
	return state
}
