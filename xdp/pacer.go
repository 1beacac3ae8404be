package xdp

// pacer decides how many frames the kernel should have to receive into. They go round in the rings: few stay in the
// caches, and most are for an owner that was off its core for a while.
type pacer struct {
	target    uint32 // few or most
	few, most uint32
	calm      uint32 // frames to come until few are enough again
}

func newPacer(most uint32) pacer {
	few := min(most, hotFrames)
	return pacer{target: few, few: few, most: most}
}

// note takes down how many frames the owner found waiting: half of few are a sign that it was late.
func (p *pacer) note(waiting uint32) {
	switch {
	case waiting > p.few/2:
		p.target, p.calm = p.most, calmFrames
	case p.calm > 0:
		if p.calm -= min(p.calm, waiting); p.calm == 0 {
			p.target = p.few
		}
	}
}
