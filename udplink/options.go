package udplink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

const (
	// DefaultPort is the port of the protocol, 0x4441. It is outside the ephemeral range of kernels.
	DefaultPort = 17473
	// defaultPayload fits into a packet of 9000 bytes with IPv6 and UDP headers. It also limits interfaces with a
	// larger MTU, such as loopback: frames of 64 KiB would need cache and bring little for messages below a megabyte.
	defaultPayload = 8952
	// maxPayload is the limit of IPv4: 65535 less the IP and UDP headers.
	maxPayload = 65507
	// defaultFrames is the number of frames per direction. The kernel's own queue holds about as many small packets.
	defaultFrames = 512
	// hostDelay is the time that packets wait in the kernel while a processor does other work. The protocol's own delay
	// target, which is for AF_XDP, would keep the window and with it the groups of packets small.
	hostDelay = 300 * time.Microsecond
	// defaultBuffer is the size in bytes requested for each of the two buffers of the socket. The kernel limits it to
	// net.core.rmem_max and wmem_max unless the process has CAP_NET_ADMIN.
	defaultBuffer = 4 << 20
)

// Options configure a link. The zero value of a field selects its default.
type Options struct {
	// Port is the UDP port for receiving and sending. 0 selects DefaultPort or, if that is in use, a port that the
	// kernel chooses; Link.Local returns it.
	Port uint16
	// MaxPayload is the largest UDP payload of a packet in bytes; 8952 by default. The interface's MTU may set a lower
	// limit.
	MaxPayload int
	// Frames is the number of frames per direction; 512 by default.
	Frames int
	// Buffer is the size in bytes of the kernel's queues; 4 MiB by default.
	Buffer int
	// Interface is the name of the interface through which packets leave and arrive (SO_BINDTODEVICE of Linux). Without one,
	// packets leave by the routes of the host, and arrive through any interface.
	Interface string
	// NoOffload turns off UDP_SEGMENT and UDP_GRO: each packet is a message of its own.
	NoOffload bool

	portable bool // read with a goroutine even on Linux, for tests
}

// DefaultOptions returns the options that the zero value selects.
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

// validate reports every invalid field.
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

// headers returns the size of the IP and UDP headers of a family.
func headers(a netip.Addr) int {
	if a.Is4() {
		return 28
	}
	return 48
}

// interfaceMTU returns the MTU of the interface that has the address, and that its zone names; 0 if it is unknown.
// Several interfaces can have the same link-local address.
func interfaceMTU(addr netip.Addr) int {
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	zone := addr.Zone()
	for i := range all {
		if zone != "" && zone != all[i].Name && zone != strconv.Itoa(all[i].Index) {
			continue
		}
		addrs, err := all[i].Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			// All of 127.0.0.0/8 is local, but only 127.0.0.1 may be listed.
			if p.Addr() == addr.WithZone("") || addr.IsLoopback() && p.Contains(addr) {
				return all[i].MTU
			}
		}
	}
	return 0
}
