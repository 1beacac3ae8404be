package xdp

// fillLevel decides how many frames the kernel has for reception. There are two levels. The low level is so small that
// the frames stay in the CPU caches. The high level is used after the owner of the socket was descheduled, because
// packets then queue up. In zero-copy mode the NIC's receive ring always contains frames; both levels include them.
type fillLevel struct {
	target    uint32 // the current level: low or high
	low, high uint32
	late      uint32 // more waiting packets than this mean that the owner was late
	calm      uint32 // frames to receive before the level returns to low
}

// newFillLevel returns a fillLevel that starts at the low level. The argument high is the number of frames at the high
// level. The argument inNIC is the number of additional frames for the NIC's receive ring.
func newFillLevel(high, inNIC uint32) fillLevel {
	low := min(high, hotFrames)
	return fillLevel{target: low + inNIC, low: low + inNIC, high: high + inNIC, late: low / 2}
}

// note adjusts the level. waiting is the number of frames that the owner found in the rx ring.
func (p *fillLevel) note(waiting uint32) {
	switch {
	case waiting > p.late:
		p.target, p.calm = p.high, onTimeFrames
	case p.calm > 0:
		if p.calm -= min(p.calm, waiting); p.calm == 0 {
			p.target = p.low
		}
	}
}
