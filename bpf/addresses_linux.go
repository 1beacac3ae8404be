//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
)

// SetAddresses replaces the destination addresses to redirect, at most [MaxAddresses]. The first address of the Options
// stays, whether it is in the list or not. The call fails if the Options had no addresses.
//
// System calls: bpf(BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM) for each address that was added or removed.
func (s *Steer) SetAddresses(addrs []netip.Addr) error {
	if err := validateAddresses(addrs); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("bpf: addresses of %s: %w", s.ifname, ErrClosed)
	case s.addresses == nil:
		return fmt.Errorf("bpf: %s redirects packets to every address", s.ifname)
	}
	if err := s.updateAddresses(addrs); err != nil {
		return fmt.Errorf("bpf: addresses of %s: %w", s.ifname, err)
	}
	return nil
}

// updateAddresses makes the map contain the addresses. It removes others first, because the map has room for
// MaxAddresses.
func (s *Steer) updateAddresses(addrs []netip.Addr) error {
	now := make(map[netip.Addr]bool)
	for _, a := range addrs {
		now[a.Unmap()] = true
	}
	for a := range s.addresses {
		if now[a] {
			continue
		}
		if err := s.objs.Addresses.Delete(a.As16()); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
		delete(s.addresses, a)
	}
	for a := range now {
		if s.addresses[a] {
			continue
		}
		if err := s.objs.Addresses.Put(a.As16(), uint8(1)); err != nil {
			return err
		}
		s.addresses[a] = true
	}
	return nil
}
