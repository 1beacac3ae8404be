package progress

// This file has every wake-up of package progress:
//
//	cause                                      woken goroutine                     function
//	a poll, which may set an earlier deadline  background owner in phase Sleeping  wake
//	a waiter parks                             background owner in phase Watching  handOver
//	a waiter parks in mode Busy                background owner in phase Sleeping  handOver
//	Group.Close                                background owner in every phase     halt
//	a post while the engine is owned           none: the owner polls again         Engine.Ring
//	an event arrives                           parked waiter                       Signal.Raise

// Signal wakes one parked goroutine. It is a channel that holds at most one token. If no goroutine waits, the method
// Raise leaves a token in the channel; the next wait takes the token and returns immediately.
type Signal chan struct{}

// NewSignal makes a Signal without a token.
func NewSignal() Signal { return make(Signal, 1) }

// Raise wakes the waiter or, if no goroutine waits, ends the next wait. It does not block.
func (s Signal) Raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Clear removes the token if there is one.
func (s Signal) Clear() { received(s) }

// sleeping reports whether the background owner sleeps or is about to sleep.
func (d *Driver) sleeping() bool { return d.Phase() == Sleeping }

// The method wake ends the sleep of the background owner. It is called after a poll, because the engine may have an
// earlier deadline now. Only the owner of the engine may call wake.
func (d *Driver) wake() {
	if d.sleeping() && d.phase.CompareAndSwap(uint32(Sleeping), uint32(Polling)) {
		d.link.Wake()
	}
}

// handOver tells the background owner that a caller stops polling. The background owner then polls without waiting for
// its next check. In mode Busy, handOver also ends the sleep of the background owner, which polls from now on.
func (d *Driver) handOver() {
	if d.group.Mode == Busy && d.sleeping() {
		d.link.Wake()
	}
	select {
	case d.handover <- struct{}{}:
	default:
	}
}

// halt stops the background owner and waits until it has ended.
func (d *Driver) halt() {
	close(d.stop)
	d.link.Wake()
	<-d.done
}

// The function received reports whether a receive from ch succeeds without blocking. It does if ch is closed or has a
// token. If ch has a token, the function takes the token.
func received(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
