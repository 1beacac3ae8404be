package xdp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/bpf"
)

// MaxAddresses is the largest number of addresses of its interface that a Device serves.
const MaxAddresses = bpf.MaxAddresses

// served are the addresses of the interface whose packets the device receives. It is immutable; a change of the
// interface's addresses replaces it.
type served struct {
	addrs     []netip.Addr // the device's own address comes first
	missed    []netip.Addr // addresses beyond bpf.MaxAddresses
	refused   []string     // addresses without a guard, and why
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

// refuse notes an address at which no guard could be opened. An address that the interface has lost meanwhile is left out,
// because the kernel reports that too.
func (s *served) refuse(at netip.AddrPort, err error) {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		s.refused = append(s.refused, fmt.Sprintf("the address %v is not served: another program has its UDP port %d", at.Addr(), at.Port()))
	case !errors.Is(err, unix.EADDRNOTAVAIL):
		s.refused = append(s.refused, fmt.Sprintf("the address %v is not served: %v", at.Addr(), err))
	}
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
		now = d.guards.guard(now, d.sockets[0].local.Port(), d.ifindex)
		return nil
	})
	d.served.now.Store(now)
	return now, errors.Join(err, d.steer.SetAddresses(now.addrs))
}
