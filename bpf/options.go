package bpf

import (
	"errors"
	"fmt"
	"net/netip"
)

// Mode is where in the receive path the program runs.
type Mode uint8

const (
	// Auto takes Native where the driver grants it, else Generic.
	Auto Mode = iota
	// Native runs in the driver, before the kernel makes a packet of the frame.
	Native
	// Generic runs in the kernel's common receive path, on any driver, slower.
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

// MaxAddresses is the number of addresses of one family that a program compares with; it is
// MAX_ADDRESSES of steer.c.
const MaxAddresses = 8

// maxQueues bounds the socket map; no NIC has more queues than a few hundred.
const maxQueues = 1 << 16

// Options say what to steer.
type Options struct {
	// Ifindex or Interface names the interface, in the namespace of the calling thread. Where both
	// are given they must agree.
	Ifindex   int
	Interface string
	// Port is the UDP destination port to steer.
	Port uint16
	// Addresses are the destination addresses to steer, at most [MaxAddresses] of each family.
	// None means every address, which on a host that forwards packets includes those of others.
	Addresses []netip.Addr
	// MAC is the Ethernet address whose frames to steer. Zero means every one that is no group.
	MAC [6]byte
	// Queues is the number of receive queues; sockets are registered for 0 to Queues-1.
	Queues int
	// Mode is the mode to attach in.
	Mode Mode
}

// validate reports every fault, in the order of the fields.
func (o Options) validate() error {
	var errs []error
	if o.Ifindex < 0 || o.Ifindex == 0 && o.Interface == "" {
		errs = append(errs, fmt.Errorf("bpf: options: no interface (Ifindex %d, Interface %q)", o.Ifindex, o.Interface))
	}
	if o.Port == 0 {
		errs = append(errs, errors.New("bpf: options: Port is 0"))
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
	var n4, n6 int
	for _, a := range addrs {
		switch a = a.Unmap(); {
		case !a.IsValid() || a.IsUnspecified() || a.IsMulticast():
			errs = append(errs, fmt.Errorf("bpf: options: address %s is not that of a host", a))
		case a.Is4():
			n4++
		default:
			n6++
		}
	}
	if n4 > MaxAddresses || n6 > MaxAddresses {
		errs = append(errs, fmt.Errorf("bpf: options: %d IPv4 and %d IPv6 addresses, at most %d of each", n4, n6, MaxAddresses))
	}
	return errors.Join(errs...)
}
