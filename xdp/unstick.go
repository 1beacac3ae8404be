package xdp

// unstick counts turns of an owner that finds nothing to do while packets wait in the tx ring, so that a ring which stands
// still is kicked without a clock on the data path.
type unstick struct {
	turns uint32
	cons  uint32 // the kernel's index of the tx ring, when the count was last full
}

// due reports, once in stuckTurns turns, that the count is full.
func (u *unstick) due() bool {
	u.turns++
	return u.turns%stuckTurns == 0
}

// still reports whether left slots wait and the ring has not moved since the last call.
func (u *unstick) still(cons, left uint32) bool {
	stands := left > 0 && cons == u.cons
	u.cons = cons
	return stands
}
