package xdp

import (
	"errors"
	"fmt"
	"net/netip"
)

// Mode says how packets move between the driver and a socket.
type Mode string

const (
	// Auto takes the fastest mode that the driver grants: ZeroCopy, then Copy, then Generic.
	Auto Mode = "auto"
	// ZeroCopy lets the device read and write the frames by DMA.
	ZeroCopy Mode = "zero-copy"
	// Copy runs the XDP program in the driver. The kernel copies packets to and from frames.
	Copy Mode = "copy"
	// Generic runs the XDP program on socket buffers, after the driver. Every interface supports it.
	Generic Mode = "generic"
)

// DefaultPort is 0x4441, "DA". It is outside the range from which kernels take ephemeral ports.
const DefaultPort = 17473

// Options configure a Device. Begin with DefaultOptions.
type Options struct {
	// Port is the UDP port that is redirected from the kernel. Peers may have other ports.
	Port uint16
	// Addr is the device's own address. The zero Addr selects the interface's first IPv4 address or, if there is none,
	// its first global IPv6 address.
	Addr netip.Addr
	// Mode is the requested mode. Auto selects the fastest mode that works. With any other mode, Open fails if that
	// mode is not granted.
	Mode Mode
	// Queues is the number of queues to open, beginning with queue 0; 0 opens all. The NIC still spreads packets to all
	// its queues, and the device does not receive packets on queues that are not open.
	Queues int

	// Frames is the number of frames in a queue's UMEM, a power of two.
	Frames int
	// FrameSize is the size of a frame in bytes, 2048 or 4096.
	FrameSize int
	// Memory is the size in bytes of the consumers' memory (link.Caps.Memory), from which packets of several frames can
	// be sent without a copy. 0 means that there is no such memory. The kernel locks the pages of this memory once per
	// queue.
	Memory int
	// RxRing, TxRing, FillRing and CompletionRing are ring sizes in slots, powers of two. TxRing is also the largest
	// number of frames that are allocated or in transmission.
	RxRing, TxRing, FillRing, CompletionRing int
	// SendBuffer is the socket's send buffer in bytes (SO_SNDBUF); 0 selects enough for all frames of the tx ring. In
	// copy mode this buffer limits the packets that wait between the socket and the device. The kernel also counts its
	// own overhead for each packet.
	SendBuffer int
}

// DefaultOptions returns options that suit a device of one or a few queues.
func DefaultOptions() Options {
	return Options{
		Port:           DefaultPort,
		Mode:           Auto,
		Frames:         defaultFrames,
		FrameSize:      defaultFrameSize,
		RxRing:         defaultRxRing,
		TxRing:         defaultTxRing,
		FillRing:       defaultFillRing,
		CompletionRing: defaultCompletionRing,
		SendBuffer:     defaultSendBuffer,
	}
}

// validate reports every invalid field, in the order of the fields.
func (o *Options) validate() error {
	var bad faults
	if o.Port == 0 {
		bad.add("port 0: choose one between 1 and 65535")
	}
	if o.Addr.IsValid() && (o.Addr.IsUnspecified() || o.Addr.IsMulticast()) {
		bad.add("address %v: not an address of a host", o.Addr)
	}
	switch o.Mode {
	case Auto, ZeroCopy, Copy, Generic:
	default:
		bad.add("mode %q: choose %s, %s, %s or %s", o.Mode, Auto, ZeroCopy, Copy, Generic)
	}
	if o.Queues < 0 {
		bad.add("queues %d: choose 0 for all, or a number", o.Queues)
	}
	o.validateRings(&bad)
	if o.Memory < 0 || o.Memory > maxMemory {
		bad.add("memory %d: choose 0 for none, or bytes up to %d", o.Memory, maxMemory)
	}
	if o.SendBuffer < 0 {
		bad.add("send buffer %d: choose 0 for the default, or bytes", o.SendBuffer)
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("xdp: options: %w", errors.Join(bad...))
}

// validateRings reports every invalid size of rings and frames.
func (o *Options) validateRings(bad *faults) {
	if o.FrameSize != 2048 && o.FrameSize != 4096 {
		bad.add("frame size %d: choose 2048 or 4096", o.FrameSize)
	}
	rings := []struct {
		name string
		n    int
	}{{"rx ring", o.RxRing}, {"tx ring", o.TxRing}, {"fill ring", o.FillRing}, {"completion ring", o.CompletionRing}}
	for _, r := range rings {
		if r.n < minRing || r.n > maxRing || r.n&(r.n-1) != 0 {
			bad.add("%s %d: choose a power of two from %d to %d", r.name, r.n, minRing, maxRing)
		}
	}
	if o.CompletionRing < o.TxRing {
		bad.add("completion ring %d: at least the tx ring, %d", o.CompletionRing, o.TxRing)
	}
	if o.Frames < minFrames || o.Frames > maxFrames || o.Frames&(o.Frames-1) != 0 {
		bad.add("frames %d: choose a power of two from %d to %d", o.Frames, minFrames, maxFrames)
	} else if o.Frames < 2*o.TxRing {
		bad.add("frames %d: at least twice the tx ring, %d", o.Frames, o.TxRing)
	}
}

// faults are the errors of invalid fields.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// ownerFrames returns the number of received frames that the owner may keep.
func (o *Options) ownerFrames() int { return o.Frames / 4 }

// sendBuffer returns the value for SO_SNDBUF. The kernel doubles it. For each frame, the kernel counts the size of a
// block with room for its overhead, which is a power of two, and struct sk_buff.
func (o *Options) sendBuffer() int {
	if o.SendBuffer > 0 {
		return o.SendBuffer
	}
	const skb = 256
	return o.TxRing * (2*o.FrameSize + skb) / 2
}

// rxFrames returns the number of frames that are always left for reception. The other frames may be in the tx ring, or
// may be received packets that the owner holds.
func (o *Options) rxFrames() int {
	return min(o.Frames-o.TxRing-o.ownerFrames(), o.FillRing, o.RxRing)
}
