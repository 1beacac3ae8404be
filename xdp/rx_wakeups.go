package xdp

// rxWakeups limits how often an idle owner wakes the driver for the fill ring. Some drivers set the need-wakeup flag
// whenever their own ring is not full, which may be always. A wakeup is useful only if the fill ring contains a frame
// for the driver. rxWakeups counts idle polls, because the data path reads no clock.
type rxWakeups struct {
	prod         uint32 // producer index of the fill ring at the last call
	polls, pause uint32 // idle polls since the last call; idle polls from one call to the next
}

// due reports whether this idle poll must wake the driver. prod is the producer index of the fill ring, and backlog the
// number of frames in the ring:
//
//   - If frames were added, wake the driver at once.
//   - If no frames were added, wait twice as long as before, up to rxWakeupPause polls.
//   - If the ring is empty, wait rxWakeupPause polls. A wakeup may help even then, because the driver can reuse frames
//     of packets that it did not deliver.
func (n *rxWakeups) due(prod, backlog uint32) bool {
	switch {
	case backlog == 0:
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
