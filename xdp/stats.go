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
