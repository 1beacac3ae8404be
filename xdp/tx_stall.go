package xdp

// txStall detects a tx ring that does not move while packets wait. It counts the owner's idle polls, because the data
// path reads no clock.
type txStall struct {
	polls uint32
	cons  uint32 // the kernel's index in the tx ring at the last check
}

// due returns true on every stuckPolls-th call: it is time for a check.
func (u *txStall) due() bool {
	u.polls++
	return u.polls%stuckPolls == 0
}

// The method still reports whether packets wait and the ring has not moved since the last check. The argument backlog
// is the number of packets that wait.
func (u *txStall) still(cons, backlog uint32) bool {
	stands := backlog > 0 && cons == u.cons
	u.cons = cons
	return stands
}
