package xdp

import (
	"errors"
	"fmt"
	"net/netip"
)

// Mode says how packets move between the driver and a socket.
type Mode string

const (
	// Auto takes the best that the interface grants: ZeroCopy, then Copy, then Generic.
	Auto Mode = "auto"
	// ZeroCopy lets the device read and write the frames itself.
	ZeroCopy Mode = "zero-copy"
	// Copy runs the program in the driver and copies packets to and from frames.
	Copy Mode = "copy"
	// Generic runs the program on socket buffers, after the driver. Any interface can.
	Generic Mode = "generic"
)

// DefaultPort is 0x4441, "DA", outside the range from which kernels take ephemeral ports.
const DefaultPort = 17473

// Options shape a Device. Begin with DefaultOptions.
type Options struct {
	// Port is the UDP port that is taken from the kernel, here and at every peer.
	Port uint16
	// Addr is the address to be known by. The zero Addr is the interface's first IPv4 address, or
	// its first global IPv6 address if it has no IPv4.
	Addr netip.Addr
	// Mode asks for a way to move packets. A mode asked for by name that is not granted is an error.
	Mode Mode
	// Queues is the number of queues to open, from queue 0 on; 0 is all of them. A queue that is
	// left out keeps the packets which the device spreads to it.
	Queues int

	// Frames is the number of frames of a queue's UMEM, a power of two.
	Frames int
	// FrameSize is the size of a frame in bytes, 2048 or 4096.
	FrameSize int
	// Memory is the size in bytes of the memory that packets of several frames can be sent from in place
	// (link.Caps.Memory); 0 is none. The kernel locks it once for each queue.
	Memory int
	// RxRing, TxRing, FillRing and CompletionRing are sizes of rings in slots, powers of two.
	// TxRing is also the number of frames that can be allocated or in transmission.
	RxRing, TxRing, FillRing, CompletionRing int
	// SendBuffer bounds the bytes of packets in copy mode that the kernel holds between us and the
	// device, with its own overhead counted (SO_SNDBUF); 0 leaves the kernel's default.
	SendBuffer int
}

// DefaultOptions are the options that suit an adapter of one or a few queues.
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

// validate reports every fault, in the order of the fields.
func (o *Options) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.Port == 0 {
		fault("port 0: choose one between 1 and 65535")
	}
	if o.Addr.IsValid() && (o.Addr.IsUnspecified() || o.Addr.IsMulticast()) {
		fault("address %v: not an address of a host", o.Addr)
	}
	switch o.Mode {
	case Auto, ZeroCopy, Copy, Generic:
	default:
		fault("mode %q: choose %s, %s, %s or %s", o.Mode, Auto, ZeroCopy, Copy, Generic)
	}
	if o.Queues < 0 {
		fault("queues %d: choose 0 for all, or a number", o.Queues)
	}
	if o.FrameSize != 2048 && o.FrameSize != 4096 {
		fault("frame size %d: choose 2048 or 4096", o.FrameSize)
	}
	rings := []struct {
		name string
		n    int
	}{{"rx ring", o.RxRing}, {"tx ring", o.TxRing}, {"fill ring", o.FillRing}, {"completion ring", o.CompletionRing}}
	for _, r := range rings {
		if r.n < minRing || r.n > maxRing || r.n&(r.n-1) != 0 {
			fault("%s %d: choose a power of two from %d to %d", r.name, r.n, minRing, maxRing)
		}
	}
	if o.CompletionRing < o.TxRing {
		fault("completion ring %d: at least the tx ring, %d", o.CompletionRing, o.TxRing)
	}
	if o.Frames < minFrames || o.Frames > maxFrames || o.Frames&(o.Frames-1) != 0 {
		fault("frames %d: choose a power of two from %d to %d", o.Frames, minFrames, maxFrames)
	} else if o.Frames < 2*o.TxRing {
		fault("frames %d: at least twice the tx ring, %d", o.Frames, o.TxRing)
	}
	if o.Memory < 0 || o.Memory > maxMemory {
		fault("memory %d: choose 0 for none, or bytes up to %d", o.Memory, maxMemory)
	}
	if o.SendBuffer < 0 {
		fault("send buffer %d: choose 0 for the default, or bytes", o.SendBuffer)
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("xdp: options: %w", errors.Join(faults...))
}

// held is the number of received frames that the owner may keep back.
func (o *Options) held() int { return o.Frames / 4 }

// filled is the number of frames that the kernel has to receive into: what is left when the owner
// holds all it may and transmits all it can.
func (o *Options) filled() int {
	return min(o.Frames-o.TxRing-o.held(), o.FillRing, o.RxRing)
}
