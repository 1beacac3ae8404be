//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
)

// load creates the maps and loads the program. The options become constants of the program.
func load(o Options) (*steerObjects, error) {
	multiBuffer, err := haveMultiBuffer()
	if err != nil {
		return nil, loadError(err)
	}
	return loadWith(o, multiBuffer)
}

// haveMultiBuffer reports whether the kernel supports XDP frames of several buffers (Linux 5.18). Without this support
// the program must not have the section "xdp.frags", and attaches only at a small MTU.
func haveMultiBuffer() (bool, error) {
	err := features.HaveProgramHelper(ebpf.XDP, asm.FnXdpGetBuffLen)
	if errors.Is(err, ebpf.ErrNotSupported) {
		return false, nil
	}
	return err == nil, err
}

func loadWith(o Options, multiBuffer bool) (*steerObjects, error) {
	spec, err := specFor(o, multiBuffer)
	if err != nil {
		return nil, fmt.Errorf("bpf: read embedded object: %w", err)
	}
	objs := &steerObjects{}
	err = spec.LoadAndAssign(objs, nil)
	if !multiBuffer && errors.Is(err, syscall.EACCES) {
		// The verifier allows the pointer subtraction of this variant only with CAP_PERFMON.
		err = fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	if err != nil {
		return nil, loadError(err)
	}
	return objs, nil
}

func loadError(err error) error {
	switch {
	// EPERM only: the verifier rejects a program with EACCES.
	case errors.Is(err, syscall.EPERM):
		err = fmt.Errorf("%w: %w", ErrPrivilege, err)
	case errors.Is(err, ebpf.ErrNotSupported):
		err = fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return fmt.Errorf("bpf: load steering program: %w", err)
}

// xdpHasFrags is BPF_F_XDP_HAS_FRAGS of linux/bpf.h.
const xdpHasFrags = 1 << 5

func specFor(o Options, multiBuffer bool) (*ebpf.CollectionSpec, error) {
	spec, err := loadSteer()
	if err != nil {
		return nil, err
	}
	spec.Maps[steerMapXsks].MaxEntries = uint32(o.Queues)
	program := spec.Programs[steerProgDatxdpSteer]
	program.Flags &^= xdpHasFrags
	if multiBuffer {
		program.Flags |= xdpHasFrags
	}
	return spec, setConstants(spec, o, multiBuffer)
}

func setConstants(spec *ebpf.CollectionSpec, o Options, multiBuffer bool) error {
	addrs4, addrs6 := split(o.Addresses)
	for _, c := range []struct {
		name  string
		value any
	}{
		{steerVarPort, o.Port},
		{steerVarAnyAddress, len(o.Addresses) == 0},
		{steerVarMultiBuffer, multiBuffer},
		{steerVarMac, o.MAC},
		{steerVarAddresses4, addrs4},
		{steerVarAddresses6, addrs6},
	} {
		if err := spec.Variables[c.name].Set(c.value); err != nil {
			return fmt.Errorf("set %s: %w", c.name, err)
		}
	}
	return nil
}

// split converts addresses to the form that the program compares: network byte order, unused slots zero.
func split(addrs []netip.Addr) (a4 [MaxAddresses][4]byte, a6 [MaxAddresses][16]byte) {
	var n4, n6 int
	for _, a := range addrs {
		if a = a.Unmap(); a.Is4() {
			a4[n4] = a.As4()
			n4++
		} else {
			a6[n6] = a.As16()
			n6++
		}
	}
	return a4, a6
}
