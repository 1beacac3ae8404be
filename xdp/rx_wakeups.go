package xdp

// rxWakeups limits how often an idle owner wakes the driver to take frames from the fill ring. Some drivers set the
// need-wakeup flag of the fill ring whenever the NIC's receive ring is not full. If the receive ring is never full, the
// flag is always set, and most wakeups would be useless. rxWakeups counts idle polls, because the data path reads no
// clock.
type rxWakeups struct {
	lastProducer    uint32 // producer index of the fill ring when mustWake last saw it move
	polls, interval uint32 // idle polls since the last wakeup; idle polls from one wakeup to the next
}

// mustWake reports whether this idle poll must wake the driver. prod is the producer index of the fill ring, and
// backlog is the number of frames in the fill ring. There are three cases:
//
//   - The ring is empty: wake the driver every rxWakeupPause polls. This may help, because the driver can reuse frames
//     of packets that it did not deliver.
//   - The ring has frames, and some were added since the last wakeup: wake the driver at once.
//   - The ring has frames, but none was added: wait twice as many polls as the last time, up to rxWakeupPause.
func (n *rxWakeups) mustWake(prod, backlog uint32) bool {
	switch {
	case backlog == 0:
		n.interval = rxWakeupPause
	case prod != n.lastProducer:
		n.lastProducer, n.polls, n.interval = prod, 0, 1
		return true
	}
	if n.polls++; n.polls < n.interval {
		return false
	}
	n.polls, n.interval = 0, min(2*n.interval, rxWakeupPause)
	return true
}
