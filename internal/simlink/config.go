package simlink

import (
	"fmt"
	"time"
)

// Config describes a network. The zero value is a perfect network in virtual time.
type Config struct {
	// Seed determines every random choice.
	Seed uint64
	// Immediate delivers packets inside Send and makes Wait really sleep. Delay, Rate, MarkFrames, Switch and Hold must then be
	// zero, because they need virtual time.
	Immediate bool
	// Delay is the one-way propagation delay.
	Delay time.Duration
	// Rate is the transmission rate of a link in bits per second; 0 is infinitely fast.
	Rate int64
	// Loss, Duplicate, Reorder and Corrupt are probabilities per packet, 0 to 1. A reordered packet arrives after later
	// ones. A corrupted packet has one bit flipped.
	Loss, Duplicate, Reorder, Corrupt float64
	// MTU is the largest UDP payload of one packet in bytes; 0 means 1472.
	MTU int
	// QueueFrames limits the transmit queue of each link and, in immediate mode, the queue of received frames. Further
	// packets are dropped and counted. With 0 only Frames limits the queues.
	QueueFrames int
	// Switch is the switch between the hosts. The zero value means that the hosts are connected without one.
	Switch Switch
	// Hold makes packets late.
	Hold Hold
	// MarkFrames is the length of the transmit queue from which packets are marked CE; 0 marks none.
	MarkFrames int
	// FrameSize is the payload in bytes that a frame from Alloc holds; 0 means 2048.
	FrameSize int
	// RxFrameSize is the payload in bytes of a received frame; a larger packet is split. 0 means FrameSize.
	RxFrameSize int
	// Segments is the largest number of frames in one packet. 0 means as many as a packet of MTU bytes needs with the
	// smaller of the two frame sizes.
	Segments int
	// Frames is the number of frames in each direction of each link; 0 means 1024.
	Frames int
	// Memory is the size in bytes of each link's memory for sending in place (link.Caps.Memory), in blocks of
	// FrameSize; 0 is none. Segments must then leave room for the additional pieces.
	Memory int
	// Group is the largest size in bytes of a group (link.Caps.Group). A group is consecutive packets of one Send that
	// take one path and have one size; the last may be shorter. They arrive together, when the last one has been
	// transmitted. Losses and all other impairments affect single packets. The packets of a group that arrive one after
	// the other are in one block at the receiver, as if the kernel had merged them (UDP_GRO). 0 means no groups. Each
	// packet must fit into one frame.
	Group int
	// Blocks is the number of blocks of each link if Group is set; 0 means 64. Without a free block a link receives
	// nothing.
	Blocks int
	// NoGroups makes links unable to take groups apart (link.Caps.NoGroups): the network loses groups of several packets,
	// as a receiver does that takes them for one. It needs virtual time.
	NoGroups bool
	// RxWindow limits the packets that wait at a link to be received, and is link.Caps.RxWindow. Further packets are
	// dropped and counted. With 0 only Frames limits them.
	RxWindow int
	// Refuse makes the network report to a sender that no link listens at an address (link.Reporter). This simulates a
	// host whose kernel is up; it needs virtual time. RefuseSlowly limits the reports from one address to another to
	// six at once, then one per second, as in Linux (net.ipv4.icmp_ratelimit).
	Refuse, RefuseSlowly bool
	// Unchecked disables the poisoning of free frames, for benchmarks. A double free, and the use of a frame that is
	// not held, still panic.
	Unchecked bool
}

// Hold describes packets that are late, so that later packets overtake them. Each packet waits with the probability
// Share, for a time between Min and Max, behind the queues.
type Hold struct {
	Share    float64
	Min, Max time.Duration
}

func setDefault(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}

// withDefaults fills in zero fields. It panics on impossible values, because they are a bug of the test.
func (c Config) withDefaults() Config {
	setDefault(&c.MTU, 1472)
	setDefault(&c.FrameSize, 2048)
	setDefault(&c.RxFrameSize, c.FrameSize)
	setDefault(&c.Frames, 1024)
	if c.MTU < 1 || c.FrameSize < 1 || c.RxFrameSize < 1 || c.Frames < 1 || c.Segments < 0 {
		panic(fmt.Sprintf("simlink: New: negative size in %+v", c))
	}
	setDefault(&c.Segments, ceil(c.MTU, min(c.FrameSize, c.RxFrameSize)))
	if c.Segments*c.RxFrameSize < c.MTU {
		panic(fmt.Sprintf("simlink: New: %d frames of %d bytes cannot receive MTU %d",
			c.Segments, c.RxFrameSize, c.MTU))
	}
	if c.Frames < c.Segments {
		panic(fmt.Sprintf("simlink: New: %d frames cannot hold a packet of %d", c.Frames, c.Segments))
	}
	setDefault(&c.Blocks, 64)
	if c.Group > 0 && c.Segments > 1 {
		panic(fmt.Sprintf("simlink: New: groups of packets with %d frames", c.Segments))
	}
	if c.Switch.present() && c.portRate() == 0 {
		panic("simlink: New: a switch needs a rate")
	}
	if c.Hold.Max < c.Hold.Min {
		panic(fmt.Sprintf("simlink: New: %+v", c.Hold))
	}
	if c.Immediate && (c.Delay != 0 || c.Rate != 0 || c.MarkFrames != 0 || c.Switch.present() || c.Hold != Hold{}) {
		panic("simlink: New: Delay, Rate, MarkFrames, Switch and Hold need virtual time")
	}
	return c
}

// portRate returns the rate of the switch port to a host.
func (c *Config) portRate() int64 {
	if c.Switch.Rate > 0 {
		return c.Switch.Rate
	}
	return c.Rate
}

// of returns the configuration of a host.
func (c *Config) of(h Host) *Config {
	if h == (Host{}) {
		return c
	}
	own := *c
	if h.Rate > 0 {
		own.Rate = h.Rate
	}
	if h.MTU > 0 {
		own.MTU, own.FrameSize, own.RxFrameSize, own.Segments = h.MTU, h.MTU, h.MTU, 1
	}
	if h.Frames > 0 {
		own.Frames = h.Frames
	}
	own = own.withDefaults()
	return &own
}

// maxPayload returns the largest payload of a packet made of transmit frames.
func (c *Config) maxPayload() int { return min(c.MTU, c.Segments*c.FrameSize) }

func ceil(a, b int) int { return (a + b - 1) / b }
