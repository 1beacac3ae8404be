package xdp

// fillLevel decides how many frames the kernel has for reception. There are two levels. The low level is so small that
// the frames stay in the CPU caches. The high level is used after the owner of the socket was descheduled, because
// packets then queue up. In zero-copy mode the NIC's receive ring always contains frames; both levels include them.
type fillLevel struct {
	target      uint32 // the current level: low or high
	low, high   uint32
	lateAbove   uint32 // if more packets than this wait, the owner was late
	framesToLow uint32 // frames to receive before the level returns to low
}

// newFillLevel returns a fillLevel that starts at the low level. highFrames is the number of frames at the high level.
// ringFrames is the number of additional frames for the NIC's receive ring.
func newFillLevel(highFrames, ringFrames uint32) fillLevel {
	low := min(highFrames, hotFrames)
	return fillLevel{target: low + ringFrames, low: low + ringFrames, high: highFrames + ringFrames, lateAbove: low / 2}
}

// adjust adjusts the level. waiting is the number of frames that the owner found in the rx ring.
func (p *fillLevel) adjust(waiting uint32) {
	switch {
	case waiting > p.lateAbove:
		p.target, p.framesToLow = p.high, onTimeFrames
	case p.framesToLow > 0:
		if p.framesToLow -= min(p.framesToLow, waiting); p.framesToLow == 0 {
			p.target = p.low
		}
	}
}
