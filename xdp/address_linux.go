package xdp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// LocalAddr returns the address that Open chooses on an interface: the first IPv4 address or, without one, the first
// IPv6 address that is not link-local. It never returns an address that has failed duplicate address detection. If all
// candidates are tentative, it waits for the end of the detection, for about 3 s at most.
//
// System calls: socket, sendto, recvfrom (netlink).
func LocalAddr(ifname string) (netip.Addr, error) {
	ifi, err := FindInterface(ifname)
	if err != nil {
		return netip.Addr{}, err
	}
	now, err := route.ReadInterface(ifi.Index)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("xdp: %s: %w", ifname, err)
	}
	addr, _, err := awaitAddr(ifname, func() route.Interface {
		if again, err := route.ReadInterface(ifi.Index); err == nil {
			now = again
		}
		return now
	}, netip.Addr{})
	return addr, err
}

// SourceAddr returns the source address of packets that a device, opened with these options, would send to an address. It
// is not valid if the device would serve no address of this family. It binds the port of o at each address of the
// interface for a moment, as Open does; if the port is in use, as when the device is open, all addresses count as served.
//
// System calls: those of netlink; socket, setsockopt, bind.
func SourceAddr(ifname string, o Options, to netip.AddrPort) (from netip.Addr, err error) {
	ifi, err := FindInterface(ifname)
	if err != nil {
		return from, err
	}
	d := &Device{name: ifname, ifindex: ifi.Index}
	defer func() { err = errors.Join(err, d.guards.close()) }()
	h, err := d.identify(&o)
	if d.routes != nil {
		defer d.routes.Close()
	}
	if err != nil {
		return from, err
	}
	if own, err := openGuard(h.local, d.ifindex); err == nil {
		d.guards.add(own)
		d.served.now.Store(d.guards.guard(d.served.now.Load(), o.Port, d.ifindex))
	}
	return h.sourceFor(netip.AddrPortFrom(to.Addr().Unmap(), to.Port())), nil
}

// errTentative reports that duplicate address detection has not ended.
var errTentative = errors.New("duplicate address detection has not ended")

// awaitAddr chooses the device's own address, and returns the state of the interface that has it. It waits while the
// address is tentative, for at most tentativeWait.
func awaitAddr(name string, read func() route.Interface, want netip.Addr) (netip.Addr, route.Interface, error) {
	for deadline := time.Now().Add(tentativeWait); ; time.Sleep(tentativePause) {
		now := read()
		addr, err := chooseAddr(name, &now, want.Unmap())
		if !errors.Is(err, errTentative) || time.Now().After(deadline) {
			return addr, now, err
		}
	}
}

// chooseAddr picks the device's own address.
func chooseAddr(name string, now *route.Interface, want netip.Addr) (netip.Addr, error) {
	if want.IsValid() {
		return want, hasAddr(name, now, want)
	}
	var best netip.Addr
	for _, p := range now.Addrs {
		switch a := p.Addr(); {
		case a.Is4():
			return a, nil
		case !best.IsValid() && !a.IsLinkLocalUnicast():
			best = a
		}
	}
	if best.IsValid() {
		return best, nil
	}
	for _, list := range [][]netip.Addr{now.Tentative, now.Duplicate} {
		if i := slices.IndexFunc(list, func(a netip.Addr) bool { return !a.IsLinkLocalUnicast() }); i >= 0 {
			return best, hasAddr(name, now, list[i])
		}
	}
	return best, fmt.Errorf("xdp: %s has no address: give it one (ip address add ... dev %s): %w", name, name, link.ErrUnsupported)
}

// hasAddr returns an error if the interface does not have an address that can be used. It names the state of the
// address.
func hasAddr(name string, now *route.Interface, want netip.Addr) error {
	switch {
	case slices.ContainsFunc(now.Addrs, func(p netip.Prefix) bool { return p.Addr() == want }):
		return nil
	case slices.Contains(now.Tentative, want):
		return &openError{fmt.Sprintf("xdp: %s: the address %v is tentative: duplicate address detection has not ended; wait, or check that the interface has carrier", name, want),
			[]error{errTentative, link.ErrUnsupported}}
	case slices.Contains(now.Duplicate, want):
		return fmt.Errorf("xdp: %s: the address %v has failed duplicate address detection: another host of the link has it; give one of the two another address: %w",
			name, want, link.ErrUnsupported)
	}
	return fmt.Errorf("xdp: %s does not have the address %v: choose one of %v: %w", name, want, now.Addrs, link.ErrUnsupported)
}
