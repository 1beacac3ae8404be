package xdp

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

// Local implements link.Link.
func (s *Socket) Local() netip.AddrPort { return s.local }

// Caps implements link.Link.
func (s *Socket) Caps() link.Caps {
	c := s.caps
	if s.lowered.Load() {
		c.Mode = string(Copy)
	}
	return c
}

// Resolve implements link.Link. Entropy chooses one of the device's source ports.
func (s *Socket) Resolve(to netip.AddrPort, entropy uint16) (link.Path, error) {
	return s.add(netip.Addr{}, to, s.sourcePort(entropy))
}

// ResolveFrom implements link.Link. If from is an address of the device, it makes no system call.
func (s *Socket) ResolveFrom(from netip.Addr, to netip.AddrPort, _ uint16) (link.Path, error) {
	return s.add(from, to, s.local.Port())
}

// add resolves a path and adds it to the table.
func (s *Socket) add(from netip.Addr, to netip.AddrPort, port uint16) (link.Path, error) {
	p, err := s.resolve(from, netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), port)
	if err != nil {
		return 0, err
	}
	id, err := s.paths.Add(p)
	if err != nil {
		s.release(p)
		return 0, fmt.Errorf("xdp: %v: %w", to, err)
	}
	return id, nil
}

// resolve makes a path. Packets to this host leave from the service port, at which this host receives them.
func (s *Socket) resolve(from netip.Addr, to netip.AddrPort, port uint16) (*path, error) {
	if why := s.ended.Load(); why != nil {
		return nil, *why
	}
	if !to.Addr().IsValid() || to.Port() == 0 {
		return nil, fmt.Errorf("xdp: %v: not a valid peer address: %w", to, link.ErrUnreachable)
	}
	if zone := to.Addr().Zone(); zone != "" {
		if to.Addr().IsLinkLocalUnicast() && !s.router.InZone(zone) {
			return nil, fmt.Errorf("xdp: %v: the zone %q is not the interface of the adapter: %w (%w)", to, zone, link.ErrUnreachable, unix.EINVAL)
		}
		to = netip.AddrPortFrom(to.Addr().WithZone(""), to.Port())
	}
	if s.owns(to.Addr()) && to.Port() == s.local.Port() {
		return newPath(s.mac, to, to, nil)
	}
	if s.router.Local(s.at(netip.Addr{}), to) {
		return s.resolveLocal(from, to)
	}
	h, from, err := s.route(from, to)
	if err != nil {
		return nil, err
	}
	p, err := newPath(s.mac, netip.AddrPortFrom(from, port), to, h)
	if err != nil {
		s.router.Release(h)
	}
	return p, err
}

// resolveLocal returns the path to another program of this host.
func (s *Socket) resolveLocal(from netip.Addr, to netip.AddrPort) (*path, error) {
	if !s.owns(from) {
		from = s.sourceFor(to)
	}
	g := s.guardOf(from)
	if g == nil {
		return nil, fmt.Errorf("xdp: %v: the interface has no address of this family: %w", to, link.ErrUnreachable)
	}
	p, err := newPath(s.mac, netip.AddrPortFrom(from, s.local.Port()), to, nil)
	if err == nil {
		p.guard = g
	}
	return p, err
}

// route returns the next hop to an address, and the source address of packets there: from, if the device has this
// address. The known route is used if there is one, because a request to the kernel may wait for seconds. An answer to a
// peer (from is valid) never waits: the peer has received a Challenge by the known route.
func (s *Socket) route(from netip.Addr, to netip.AddrPort) (hop, netip.Addr, error) {
	if s.owns(from) {
		h, err := s.router.Known(s.at(from), to)
		return h, from, err
	}
	if from = s.sourceFor(to); !from.IsValid() {
		return nil, from, fmt.Errorf("xdp: %v: the adapter serves no address of this family: %w", to.Addr(), link.ErrUnreachable)
	}
	h, err := s.router.Known(s.at(from), to)
	if err != nil {
		h, err = s.router.Resolve(s.at(from), to)
	}
	return h, from, err
}

// Origin implements link.Originator.
func (s *Socket) Origin(id link.Path) netip.Addr {
	p := s.paths.Get(id)
	if p == nil {
		return netip.Addr{}
	}
	return sourceOf(p.template[ethSize:p.size])
}

// Release implements link.Link.
func (s *Socket) Release(id link.Path) {
	if p := s.paths.Remove(id); p != nil {
		s.release(p)
	}
}

func (s *Socket) release(p *path) {
	if p.hop != nil {
		s.router.Release(p.hop)
	}
}

// PathMTU implements link.Link.
func (s *Socket) PathMTU(id link.Path) int {
	p := s.paths.Get(id)
	if p == nil {
		return 0
	}
	mtu := s.mtu
	if p.hop != nil {
		mtu = min(mtu, p.hop.MTU())
	}
	return s.maxPayload(mtu, p.size, s.caps.Segments)
}

// Stats implements link.Link. System calls: getsockopt.
func (s *Socket) Stats() link.Stats {
	k := s.kernelStats()
	c := &s.counters
	dropped := c.kernelDropped.Load()
	return link.Stats{
		RxPackets: c.rxPackets.Load(),
		RxBytes:   c.rxBytes.Load(),
		TxPackets: c.txPackets.Load(),
		TxBytes:   c.txBytes.Load(),
		RxDropped: k.Rx_dropped + k.Rx_ring_full + s.mail.dropped.Load(),
		RxInvalid: c.rxInvalid.Load() + k.Rx_invalid_descs,
		TxDropped: c.txDropped.Load() + dropped + k.Tx_invalid_descs,
		TxKicks:   c.txKicks.Load(),
		Wakeups:   c.wakeups.Load(),
	}
}

// kernelStats reads the kernel's counters. If the socket is closed or getsockopt fails, it returns the last known
// values.
func (s *Socket) kernelStats() unix.XDPStatistics {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.kernelMu.Lock()
	defer s.kernelMu.Unlock()
	var k unix.XDPStatistics
	if s.fd >= 0 && getOption(s.fd, unix.SOL_XDP, unix.XDP_STATISTICS, &k) == nil {
		s.kernel = plus(s.past, k)
	}
	return s.kernel
}

// plus adds the kernel's counters of two sockets.
func plus(a, b unix.XDPStatistics) unix.XDPStatistics {
	return unix.XDPStatistics{
		Rx_dropped: a.Rx_dropped + b.Rx_dropped, Rx_ring_full: a.Rx_ring_full + b.Rx_ring_full,
		Rx_invalid_descs: a.Rx_invalid_descs + b.Rx_invalid_descs, Tx_invalid_descs: a.Tx_invalid_descs + b.Tx_invalid_descs,
		Rx_fill_ring_empty_descs: a.Rx_fill_ring_empty_descs + b.Rx_fill_ring_empty_descs,
		Tx_ring_empty_descs:      a.Tx_ring_empty_descs + b.Tx_ring_empty_descs,
	}
}
