package xdp

import (
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/datxdp/datxdp/bpf"
)

// served are the addresses of the interface whose packets the device receives. It is immutable; a change of the
// interface's addresses replaces it.
type served struct {
	addrs     []netip.Addr // the device's own address comes first
	missed    []netip.Addr // addresses beyond bpf.MaxAddresses
	taken     []netip.Addr // addresses at which another program has the port
	guards    map[netip.Addr]*guard
	admission admission
}

// newServed returns the addresses to serve: the address local, those of was that the interface still has, and then the
// others, so that a new address never displaces one in use.
func newServed(local netip.Addr, was []netip.Addr, have []netip.Prefix) *served {
	s := &served{addrs: []netip.Addr{local}}
	now := make(map[netip.Addr]bool)
	for _, p := range have {
		now[p.Addr()] = true
	}
	taken := map[netip.Addr]bool{local: true}
	add := func(a netip.Addr) {
		switch {
		case taken[a] || !now[a]:
			return
		case len(s.addrs) < bpf.MaxAddresses:
			s.addrs = append(s.addrs, a)
		default:
			s.missed = append(s.missed, a)
		}
		taken[a] = true
	}
	for _, a := range was {
		add(a)
	}
	for _, p := range have {
		add(p.Addr())
	}
	s.admission = newAdmission(s.addrs, broadcasts(have))
	return s
}

func (s *served) owns(a netip.Addr) bool { return slices.Contains(s.addrs, a) }

// servedAddrs is the current served of a device, which its sockets share.
type servedAddrs struct{ now atomic.Pointer[served] }

// follow serves the addresses that the interface has now. The sockets accept packets to a new address before the program
// redirects them.
func (d *Device) follow(have []netip.Prefix) (*served, error) {
	was := d.served.now.Load()
	now := newServed(d.local, was.addrs, have)
	err := d.ns.run(func() error {
		now = d.guards.guard(now, d.sockets[0].local.Port(), d.Name())
		return nil
	})
	d.served.now.Store(now)
	return now, errors.Join(err, d.steer.SetAddresses(now.addrs))
}
