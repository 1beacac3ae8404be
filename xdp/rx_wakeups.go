package xdp

// rxWakeups limits how often an idle owner wakes the driver for the fill ring. Some drivers set the need-wakeup flag
// whenever their own ring is not full. If this ring is never full, the flag is always set. A wakeup is useful only if
// the fill ring contains a frame for the driver. rxWakeups counts idle polls, because the data path reads no clock.
type rxWakeups struct {
	prod         uint32 // producer index of the fill ring when due last saw it move
	polls, pause uint32 // idle polls since the last wakeup; idle polls from one wakeup to the next
}

// The method due reports whether this idle poll must wake the driver. The argument prod is the producer index of the
// fill ring. The argument backlog is the number of frames in the ring. There are three cases:
//
//   - The ring is empty: wake the driver every rxWakeupPause polls. This may help, because the driver can reuse frames
//     of packets that it did not deliver.
//   - The ring has frames, and some were added since the last wakeup: wake the driver at once.
//   - The ring has frames, but none was added: wait twice as many polls as the last time, up to rxWakeupPause.
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
