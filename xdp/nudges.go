package xdp

// nudges bounds how often an idle owner enters the kernel because the driver asks for it at the fill ring. A driver asks
// for as long as its own ring is not full, which may be always: a call helps only where there is a frame to take. It
// counts idle turns and reads no clock.
type nudges struct {
	prod         uint32 // of the fill ring at the last call
	turns, pause uint32 // since the last call, and until the next
}

// due reports whether this idle turn is to enter the kernel. prod is the producer index of the fill ring, and left the
// number of frames there. New frames are worth a call at once, the same ones after twice the pause. An empty ring is
// worth one call in nudgePause turns: the driver may have frames of its own that it took back.
func (n *nudges) due(prod, left uint32) bool {
	switch {
	case left == 0:
		n.pause = nudgePause
	case prod != n.prod:
		n.prod, n.turns, n.pause = prod, 0, 1
		return true
	}
	if n.turns++; n.turns < n.pause {
		return false
	}
	n.turns, n.pause = 0, min(2*n.pause, nudgePause)
	return true
}
