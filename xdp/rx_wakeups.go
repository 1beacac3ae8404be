package xdp

// rxWakeups bounds how often an idle owner makes a system call because the fill ring has its need-wakeup flag set. A
// driver sets this flag while its own ring is not full, which may be always. A call only helps if the fill ring has a
// frame for the driver. rxWakeups counts idle polls, because the data path reads no clock.
type rxWakeups struct {
	prod         uint32 // producer index of the fill ring at the last call
	polls, pause uint32 // idle polls since the last call, and until the next
}

// due reports whether this idle poll must make the system call. prod is the producer index of the fill ring, left the
// number of frames in it. New frames are worth an immediate call. For the same frames the pause doubles each time. An
// empty ring is worth one call every rxWakeupPause polls, because the driver may hold frames that it took back.
func (n *rxWakeups) due(prod, left uint32) bool {
	switch {
	case left == 0:
		n.pause = rxWakeupPause
	case prod != n.prod:
		n.prod, n.polls, n.pause = prod, 0, 1
		return true
	}
	if n.polls++; n.polls < n.pause {
		return false
	}
	n.polls, n.pause = 0, min(2*n.pause, rxWakeupPause)
	return true
}
