package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Mode is the place in the receive path where the program runs.
type Mode uint8

const (
	// Auto selects Native if the driver supports it, otherwise Generic.
	Auto Mode = iota
	// Native runs in the driver, before the kernel allocates a socket buffer.
	Native
	// Generic runs in the kernel's common receive path. It works with any driver and is slower.
	Generic
)

func (m Mode) String() string {
	switch m {
	case Auto:
		return "auto"
	case Native:
		return "native"
	case Generic:
		return "generic"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// MaxAddresses is the largest number of addresses that the program redirects. It equals MAX_ADDRESSES in classify.h.
const MaxAddresses = 256

// maxQueues limits the size of the socket map. NICs have a few hundred queues at most.
const maxQueues = 1 << 16

// Options configure the redirect.
type Options struct {
	// Ifindex or Interface selects the interface, in the namespace of the calling thread. If both are set, they must
	// agree.
	Ifindex   int
	Interface string
	// Port is the UDP destination port to redirect.
	Port uint16
	// Sources are further UDP destination ports to redirect: those from which packets leave, and to which answers come.
	Sources []uint16
	// Addresses are the destination addresses to redirect, at most [MaxAddresses]. The first of them costs least. An empty
	// list means every address; on a host that forwards packets this includes packets for other hosts.
	// [Steer.SetAddresses] changes the list, unless it is empty.
	Addresses []netip.Addr
	// MAC is the destination Ethernet address to redirect. Zero means every unicast address.
	MAC [6]byte
	// Queues is the number of receive queues. Sockets are registered for 0 to Queues-1.
	Queues int
	// Mode is the requested mode.
	Mode Mode
}

// validate reports every invalid field, in the order of the fields.
func (o Options) validate() error {
	var errs []error
	if o.Ifindex < 0 || o.Ifindex == 0 && o.Interface == "" {
		errs = append(errs, fmt.Errorf("bpf: options: no interface (Ifindex %d, Interface %q)", o.Ifindex, o.Interface))
	}
	if o.Port == 0 {
		errs = append(errs, errors.New("bpf: options: Port is 0"))
	}
	if slices.Contains(o.Sources, 0) {
		errs = append(errs, errors.New("bpf: options: a port of Sources is 0"))
	}
	errs = append(errs, validateAddresses(o.Addresses))
	if o.Queues < 1 || o.Queues > maxQueues {
		errs = append(errs, fmt.Errorf("bpf: options: Queues is %d, not 1 to %d", o.Queues, maxQueues))
	}
	if o.Mode > Generic {
		errs = append(errs, fmt.Errorf("bpf: options: unknown Mode %d", o.Mode))
	}
	return errors.Join(errs...)
}

func validateAddresses(addrs []netip.Addr) error {
	var errs []error
	for _, a := range addrs {
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
			errs = append(errs, fmt.Errorf("bpf: options: address %s is not that of a host", a))
		}
	}
	if len(addrs) > MaxAddresses {
		errs = append(errs, fmt.Errorf("bpf: options: %d addresses, at most %d", len(addrs), MaxAddresses))
	}
	return errors.Join(errs...)
}
