package xdp

// pacer decides how many frames the kernel should have to receive into. They go round in the rings: few stay in the
// caches, and most are for an owner that was off its core for a while. The receive ring of a NIC in zero-copy mode
// holds frames all the time; both numbers include them.
type pacer struct {
	target    uint32 // few or most
	few, most uint32
	late      uint32 // more frames than these waiting show that the owner was late
	calm      uint32 // frames to come until few are enough again
}

// newPacer returns a pacer for at most most frames and a NIC that holds nic more.
func newPacer(most, nic uint32) pacer {
	few := min(most, hotFrames)
	return pacer{target: few + nic, few: few + nic, most: most + nic, late: few / 2}
}

// note records how many frames the owner found waiting.
func (p *pacer) note(waiting uint32) {
	switch {
	case waiting > p.late:
		p.target, p.calm = p.most, calmFrames
	case p.calm > 0:
		if p.calm -= min(p.calm, waiting); p.calm == 0 {
			p.target = p.few
		}
	}
}
