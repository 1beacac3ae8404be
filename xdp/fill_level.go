package xdp

// fillLevel decides how many frames the kernel has for reception. Few frames stay in the CPU caches while they
// circulate through the rings. The maximum is for an owner that was descheduled: packets then queue up. In zero-copy
// mode the NIC's receive ring permanently holds frames, so both levels include its size.
type fillLevel struct {
	target    uint32 // the current level: few or most
	few, most uint32
	late      uint32 // more waiting packets than this mean that the owner was late
	calm      uint32 // frames to receive until the level returns to few
}

// newFillLevel returns the level for at most most frames; nic is the number of frames that the NIC's ring holds in
// addition.
func newFillLevel(most, nic uint32) fillLevel {
	few := min(most, hotFrames)
	return fillLevel{target: few + nic, few: few + nic, most: most + nic, late: few / 2}
}

// note adjusts the level. waiting is the number of frames that the owner found in the rx ring.
func (p *fillLevel) note(waiting uint32) {
	switch {
	case waiting > p.late:
		p.target, p.calm = p.most, onTimeFrames
	case p.calm > 0:
		if p.calm -= min(p.calm, waiting); p.calm == 0 {
			p.target = p.few
		}
	}
}
