package progress

// This file has every wake-up of package progress:
//
//	cause                              goroutine woken               function
//	a poll may have set an earlier     background owner, Sleeping    wake, which calls Link.Wake
//	 deadline
//	a waiter parks                     background owner, Watching    handOver, a token in a channel
//	a post finds the engine owned      the owner                     Engine.Ring, which disown sees
//	an event arrives                   the parked waiter             Signal.Raise
//	Close                              background owner              halt

// Signal wakes one parked goroutine. The channel holds one token. After a Raise without a waiter, the next wait takes
// the token and returns immediately.
type Signal chan struct{}

// NewSignal makes a Signal without a token.
func NewSignal() Signal { return make(Signal, 1) }

// Raise wakes the waiter or, if none waits, ends the next wait. It does not block.
func (s Signal) Raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Clear takes the token back if there is one.
func (s Signal) Clear() { received(s) }

// sleeping reports whether the background owner sleeps or is about to.
func (d *Driver) sleeping() bool { return d.Phase() == Sleeping }

// wake ends the sleep of the background owner, because the engine may have an earlier deadline now. Only the owner of
// the engine may call it.
func (d *Driver) wake() {
	if d.sleeping() && d.phase.CompareAndSwap(uint32(Sleeping), uint32(Polling)) {
		d.link.Wake()
	}
}

// handOver tells the background owner that a caller stops polling.
func (d *Driver) handOver() {
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

// received reports whether done is closed or had a token, which it takes.
func received(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
