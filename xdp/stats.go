package xdp

import "sync/atomic"

// tally accumulates the counts of one call, so that the shared counters are updated once per call.
type tally struct {
	packets, bytes, invalid uint64
}

// counters are written by the owner, once per batch. Any goroutine may read them.
type counters struct {
	rxPackets, rxBytes, rxInvalid atomic.Uint64
	txPackets, txBytes            atomic.Uint64
	txDropped                     atomic.Uint64 // dropped by this package
	kernelDropped                 atomic.Uint64 // dropped by the device, after it had taken the packet
	txKicks, wakeups              atomic.Uint64
}

func (c *counters) received(t *tally) {
	if t.packets > 0 {
		c.rxPackets.Add(t.packets)
		c.rxBytes.Add(t.bytes)
	}
	if t.invalid > 0 {
		c.rxInvalid.Add(t.invalid)
	}
}

func (c *counters) sent(t *tally) {
	c.txPackets.Add(t.packets)
	c.txBytes.Add(t.bytes)
}

// Counters counts the frames that the XDP program has processed since it was attached. Each field counts the frames
// with one outcome, as a sum over all processors. Every frame is in exactly one counter.
type Counters struct {
	// Redirected frames were handed to the socket of their queue. The socket may have dropped them; its own statistics
	// count that.
	Redirected uint64
	// PassedOther frames are not for this device: they have another port, IP address, protocol, MAC address or VLAN.
	PassedOther uint64
	// PassedNoSocket frames are for our port, on a queue without a socket.
	PassedNoSocket uint64
	// PassedFragment frames are IP fragments of UDP packets, to any port.
	PassedFragment uint64
	// PassedOptions frames have IPv4 options or IPv6 extension headers before UDP, to any port.
	PassedOptions uint64
	// PassedMalformed frames have headers or lengths that contradict each other or the frame.
	PassedMalformed uint64
}
