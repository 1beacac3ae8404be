package udplink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

const (
	// DefaultPort is the port of the protocol, 0x4441, outside the ephemeral range of kernels.
	DefaultPort = 17473
	// defaultPayload fits a 9000-byte packet with IPv6 and UDP headers. It bounds the default also
	// where the interface carries more, as loopback does: frames of 64 KiB cost cache for what
	// gains little below a megabyte.
	defaultPayload = 8952
	// maxPayload is what IPv4 can carry: 65535 less its header and UDP's.
	maxPayload = 65507
	// defaultFrames per direction: the kernel's own queue holds about as many small packets.
	defaultFrames = 512
	// defaultBuffer in bytes is asked of the kernel for either direction; it may grant less
	// (net.core.rmem_max) unless the process may force it.
	defaultBuffer = 4 << 20
)

// Options shape a link. The zero value of a field takes its default.
type Options struct {
	// Port to receive on and to send from. 0 is DefaultPort or, where another program has that, one that the kernel
	// picks; Link.Local tells.
	Port uint16
	// MaxPayload caps the UDP payload of one packet in bytes. By default it is 8952; either way
	// the MTU of the interface caps it too.
	MaxPayload int
	// Frames is the number of frames in each direction; 512 by default.
	Frames int
	// Buffer is the size in bytes of the kernel's queues; 4 MiB by default.
	Buffer int

	portable bool // read with a goroutine on Linux too, for tests
}

// DefaultOptions are the options that the zero value stands for.
func DefaultOptions() Options {
	return Options{MaxPayload: defaultPayload, Frames: defaultFrames, Buffer: defaultBuffer}
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	if o.MaxPayload == 0 {
		o.MaxPayload = d.MaxPayload
	}
	if o.Frames == 0 {
		o.Frames = d.Frames
	}
	if o.Buffer == 0 {
		o.Buffer = d.Buffer
	}
	return o
}

// validate reports every fault.
func (o *Options) validate() error {
	var faults []error
	if o.MaxPayload < 1 || o.MaxPayload > maxPayload {
		faults = append(faults, fmt.Errorf("udplink: MaxPayload %d is not in 1..%d", o.MaxPayload, maxPayload))
	}
	if o.Frames < 2 || o.Frames > 1<<20 {
		faults = append(faults, fmt.Errorf("udplink: Frames %d is not in 2..%d", o.Frames, 1<<20))
	}
	if o.Buffer < 0 {
		faults = append(faults, fmt.Errorf("udplink: Buffer %d is negative", o.Buffer))
	}
	return errors.Join(faults...)
}

// headers is the size of the IP and UDP headers of a family.
func headers(a netip.Addr) int {
	if a.Is4() {
		return 28
	}
	return 48
}

// interfaceMTU is the MTU of the interface that has an address; 0 if it cannot be told.
func interfaceMTU(addr netip.Addr) int {
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for i := range all {
		addrs, err := all[i].Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			// All of 127/8 is local, though only 127.0.0.1 may be listed.
			if p.Addr() == addr.WithZone("") || addr.IsLoopback() && p.Contains(addr) {
				return all[i].MTU
			}
		}
	}
	return 0
}
