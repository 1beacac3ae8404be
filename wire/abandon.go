package wire

// abandon keeps a connection attempt that the consumer gives up after its message 1 has left, in secure mode. It sends
// nothing more. If the server accepts the attempt, the keys of the handshake authenticate a Close: without them, the server
// cannot tell the end of the requester from a forged Reset, and keeps its connection for lostAcceptWait. abandon returns
// false if the attempt is to end at once. This includes attempts with a shared receive queue, which the consumer may free.
func (c *Conn) abandon() bool {
	e, d := c.eng, &c.dial
	asked := c.State() == Connecting && !c.peerKnown && d.opening != nil && len(d.opening.offers) > 0
	if !asked || c.srq != nil || e.table.abandoned == maxAbandoned {
		return false
	}
	c.flushWork(StatusFlushed) // the consumer frees its memory
	d.abandoned = true
	e.table.abandoned++
	d.deadline = min(d.deadline, e.now.Add(abandonedWait))
	c.setDeadline(d.deadline)
	return true
}
