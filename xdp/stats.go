package xdp

import "sync/atomic"

// tally is what one call of the owner adds up before it touches the shared counters.
type tally struct {
	packets, bytes, invalid uint64
}

// counters are written by the owner, once per batch, and read by anyone.
type counters struct {
	rxPackets, rxBytes, rxInvalid atomic.Uint64
	txPackets, txBytes            atomic.Uint64
	txDropped                     atomic.Uint64 // by us
	kernelDropped                 atomic.Uint64 // by the device, after it took them
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
