package xdp

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// guards are the guards of a device, one for each address that it serves.
type guards struct {
	open    map[netip.Addr]*guard // of the goroutine that opens the device, and then of its watcher
	socket  *Socket               // receives the packets of all guards; nil before start
	size    int                   // of the largest packet in bytes
	readers sync.WaitGroup
}

func (g *guards) add(one *guard) {
	if g.open == nil {
		g.open = make(map[netip.Addr]*guard)
	}
	g.open[one.addr] = one
	if g.socket != nil {
		g.readers.Go(func() { one.read(g.socket, g.size) })
	}
}

// start begins to receive packets.
func (g *guards) start(s *Socket, size int) {
	g.socket, g.size = s, size
	for _, one := range g.open {
		g.readers.Go(func() { one.read(s, size) })
	}
}

// guard opens the guards of new addresses, and closes those of addresses that are not served any more. It returns s with
// the guards and without the addresses whose port another program has. The device's own address, the first one, keeps its
// guard.
func (g *guards) guard(s *served, port uint16, ifindex int) *served {
	for a, one := range g.open {
		if !slices.Contains(s.addrs, a) {
			_ = one.close() // it has nothing to flush
			delete(g.open, a)
		}
	}
	s.addrs = slices.DeleteFunc(s.addrs, func(a netip.Addr) bool {
		if g.open[a] != nil {
			return false
		}
		one, err := openGuard(netip.AddrPortFrom(a, port), ifindex)
		if err != nil {
			s.refuse(netip.AddrPortFrom(a, port), err)
			return true
		}
		g.add(one)
		return false
	})
	s.guards = maps.Clone(g.open)
	return s
}

// close closes the guards and waits for their readers.
func (g *guards) close() error {
	var errs []error
	for _, one := range g.open {
		errs = append(errs, one.close())
	}
	g.readers.Wait()
	return errors.Join(errs...)
}
