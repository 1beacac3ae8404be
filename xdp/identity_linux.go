package xdp

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/bpf"
	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// identify opens the routing tables and fills in the identity of the interface.
func (d *Device) identify(o *Options) (h host, err error) {
	if d.routes, err = route.Open(d.ifindex); err != nil {
		return h, fmt.Errorf("xdp: %s: routes: %w", d.name, err)
	}
	local, now, err := awaitAddr(d.name, d.routes.Refresh, o.Addr)
	if err != nil {
		return h, err
	}
	if err := refuseLayer(&now, local); err != nil {
		return h, err
	}
	d.local, d.mtu = local, min(now.MTU, maxPacket)
	d.served.now.Store(newServed(local, nil, now.Addrs))
	return host{mac: now.MAC, local: netip.AddrPortFrom(local, o.Port), pinned: o.Addr.IsValid(), served: &d.served, mtu: d.mtu,
		router: routes{d.routes}}, nil
}

// takePorts reserves the source ports and binds the guards of all addresses. An address whose port another program has
// is not served, unless it is the device's own: then the device cannot be opened.
func (d *Device) takePorts(h *host) error {
	own, err := openGuard(h.local, d.ifindex)
	if errors.Is(err, unix.EADDRINUSE) {
		return d.explainPort(h.local, err)
	}
	if err != nil {
		return fmt.Errorf("xdp: %s: %w", d.name, err)
	}
	d.guards.add(own)
	d.served.now.Store(d.guards.guard(d.served.now.Load(), h.local.Port(), d.ifindex))
	if err := d.sources.reserve(sourcePortCount); err != nil {
		return fmt.Errorf("xdp: %s: %w", d.name, err)
	}
	h.sources = d.sources.numbers
	return nil
}

// explainPort turns the error about a port in use into a sentence that says what to do about it. Another port helps only
// if the interface has no XDP program: two adapters cannot share an interface.
func (d *Device) explainPort(local netip.AddrPort, err error) error {
	if occupied := bpf.Occupied(d.ifindex); errors.Is(occupied, bpf.ErrBusy) || errors.Is(occupied, bpf.ErrForeign) {
		return explainAttach(d.name, d.mtu, fmt.Errorf("bpf: %s: %w: %w", d.name, occupied, err))
	}
	return &openError{
		text: fmt.Sprintf("xdp: %s: another program has UDP port %d of %v: stop it or choose another with the option port=", d.name, local.Port(), local.Addr()),
		is:   []error{link.ErrBusy, err},
	}
}
