//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
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

// ownerSelf is the owner of a source port in the map of the program. Any value but 0 redirects the port.
const ownerSelf = uint32(1)

func specFor(o Options, multiBuffer bool) (*ebpf.CollectionSpec, error) {
	spec, err := loadSteer()
	if err != nil {
		return nil, err
	}
	spec.Maps[steerMapXsks].MaxEntries = uint32(o.Queues)
	for _, a := range o.Addresses {
		to := spec.Maps[steerMapAddresses]
		to.Contents = append(to.Contents, ebpf.MapKV{Key: a.As16(), Value: uint8(1)})
	}
	for _, port := range o.Sources {
		to := spec.Maps[steerMapOwners]
		to.Contents = append(to.Contents, ebpf.MapKV{Key: uint32(port), Value: ownerSelf})
	}
	program := spec.Programs[steerProgDatxdpSteer]
	program.Flags &^= xdpHasFrags
	if multiBuffer {
		program.Flags |= xdpHasFrags
	}
	return spec, setConstants(spec, o, multiBuffer)
}

func setConstants(spec *ebpf.CollectionSpec, o Options, multiBuffer bool) error {
	var first [16]byte // no packet has this destination
	if len(o.Addresses) > 0 {
		first = o.Addresses[0].As16()
	}
	for _, c := range []struct {
		name  string
		value any
	}{
		{steerVarPort, o.Port},
		{steerVarAnyAddress, len(o.Addresses) == 0},
		{steerVarMultiBuffer, multiBuffer},
		{steerVarMac, o.MAC},
		{steerVarFirst, first},
	} {
		if err := spec.Variables[c.name].Set(c.value); err != nil {
			return fmt.Errorf("set %s: %w", c.name, err)
		}
	}
	return nil
}
