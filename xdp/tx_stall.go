package xdp

// txStall detects a tx ring that does not move while packets wait. It counts the owner's idle polls, because the data
// path reads no clock.
type txStall struct {
	polls        uint32
	lastConsumer uint32 // the kernel's index in the tx ring at the last check
}

// checkDue returns true on every stuckPolls-th call: it is time for a check.
func (u *txStall) checkDue() bool {
	u.polls++
	return u.polls%stuckPolls == 0
}

// stalled reports whether packets wait and the ring has not moved since the last check. cons is the kernel's index in
// the tx ring; backlog is the number of packets that wait.
func (u *txStall) stalled(cons, backlog uint32) bool {
	stands := backlog > 0 && cons == u.lastConsumer
	u.lastConsumer = cons
	return stands
}
