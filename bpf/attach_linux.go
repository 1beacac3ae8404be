//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/cilium/ebpf/link"

	"github.com/datxdp/datxdp/internal/exclusive"
)

// find looks up the interface.
func (o Options) find() (*net.Interface, error) {
	if o.Ifindex == 0 {
		ifi, err := net.InterfaceByName(o.Interface)
		if err != nil {
			return nil, fmt.Errorf("bpf: find interface %q: %w", o.Interface, err)
		}
		return ifi, nil
	}
	ifi, err := net.InterfaceByIndex(o.Ifindex)
	if err != nil {
		return nil, fmt.Errorf("bpf: find interface %d: %w", o.Ifindex, err)
	}
	if o.Interface != "" && o.Interface != ifi.Name {
		return nil, fmt.Errorf("bpf: interface %d is %q, not %q", o.Ifindex, ifi.Name, o.Interface)
	}
	return ifi, nil
}

// attach attaches the program in the requested mode. In Auto mode it falls back to Generic when the driver refuses
// Native (no support, too few queues, too large an MTU), and keeps the refusal. It does not fall back if the interface
// already has a program or this process lacks a privilege, because Generic would fail for the same reason.
func (s *Steer) attach(ifi *net.Interface, mode Mode) error {
	if mode == Generic {
		return s.attachMode(ifi, Generic)
	}
	err := s.attachMode(ifi, Native)
	if err == nil || mode == Native || errors.Is(err, ErrPrivilege) || errors.Is(err, ErrBusy) || errors.Is(err, ErrForeign) {
		return err
	}
	s.refusal = err
	if err := s.attachMode(ifi, Generic); err != nil {
		return errors.Join(s.refusal, err)
	}
	return nil
}

func (s *Steer) attachMode(ifi *net.Interface, mode Mode) error {
	flags := link.XDPDriverMode
	if mode == Generic {
		flags = link.XDPGenericMode
	}
	l, err := link.AttachXDP(link.XDPOptions{
		Program:   s.program,
		Interface: ifi.Index,
		Flags:     flags,
	})
	if err != nil {
		return attachError(ifi, mode, err, func() string { return reason(ifi.Index, s.program.FD(), uint32(flags)) })
	}
	s.link, s.mode = l, mode
	if fd, ok := descriptor(l); ok {
		exclusive.Add(fd)
	}
	return nil
}

// descriptor returns the descriptor of a link. While a process has it open, the program stays attached.
func descriptor(l link.Link) (fd int, ok bool) {
	d, ok := l.(interface{ FD() int })
	if !ok {
		return -1, false
	}
	return d.FD(), true
}

// attachError explains an error of attaching. why returns the driver's own message.
func attachError(ifi *net.Interface, mode Mode, err error, why func() string) error {
	switch {
	// EBUSY: this mode already has a program. EEXIST: another mode has one.
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EEXIST):
		err = occupied(ifi.Index, err)
	case errors.Is(err, syscall.EPERM):
		err = fmt.Errorf("%w: %w", ErrPrivilege, err)
	case errors.Is(err, syscall.EOPNOTSUPP):
		return &attachFailure{ifi.Name, mode, why(), fmt.Errorf("%w: %w", ErrUnsupported, err)}
	default:
		return &attachFailure{ifi.Name, mode, why(), fmt.Errorf("%w: %w", ErrRefused, err)}
	}
	return fmt.Errorf("bpf: attach to %s in %s mode: %w", ifi.Name, mode, err)
}
