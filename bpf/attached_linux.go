//go:build amd64 || arm64

package bpf

import "fmt"

// Attached reports whether the program is still attached. The program is detached if another program replaces it or the
// interface is deleted.
//
// System calls: bpf(BPF_OBJ_GET_INFO_BY_FD).
func (s *Steer) Attached() (bool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return false, fmt.Errorf("bpf: state of %s: %w", s.ifname, ErrClosed)
	}
	info, err := s.link.Info()
	if err != nil {
		return false, fmt.Errorf("bpf: state of %s: %w", s.ifname, err)
	}
	xdp := info.XDP()
	return xdp == nil || xdp.Ifindex != 0, nil
}
