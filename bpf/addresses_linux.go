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
	if err := replaceAddresses(s.objs.Addresses, s.addresses, addrs); err != nil {
		return fmt.Errorf("bpf: addresses of %s: %w", s.ifname, err)
	}
	return nil
}

// replaceAddresses makes a map contain the addresses. have are those that it contains now. It removes others first, because
// the map has room for MaxAddresses.
func replaceAddresses(m *ebpf.Map, have map[netip.Addr]bool, addrs []netip.Addr) error {
	now := make(map[netip.Addr]bool)
	for _, a := range addrs {
		now[a.Unmap()] = true
	}
	for a := range have {
		if now[a] {
			continue
		}
		if err := m.Delete(a.As16()); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
		delete(have, a)
	}
	for a := range now {
		if have[a] {
			continue
		}
		if err := m.Put(a.As16(), uint8(1)); err != nil {
			return err
		}
		have[a] = true
	}
	return nil
}

// readAddresses returns the addresses that a map contains.
func readAddresses(m *ebpf.Map) (map[netip.Addr]bool, error) {
	have := make(map[netip.Addr]bool)
	var key [16]byte
	var value uint8
	each := m.Iterate()
	for each.Next(&key, &value) {
		have[netip.AddrFrom16(key).Unmap()] = true
	}
	return have, each.Err()
}
