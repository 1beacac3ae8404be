package progress

// Every wake-up of the progress engine is in this file:
//
//	who wakes                     whom                       by
//	an owner whose poll may have  the background owner       wake: Link.Wake
//	 brought a deadline nearer     that sleeps in its link
//	a waiter that parks           the background owner       handOver: a token in a channel
//	                               that watches
//	a post that finds an owner    the owner                  Engine.Ring, seen by disown
//	whoever brings an event       the waiter that parked     Signal.Raise
//	Close                         the background owner       halt

// Signal wakes one parked goroutine. It holds one token, so that a Raise that comes before the wait ends the wait at once.
type Signal chan struct{}

// NewSignal makes a signal.
func NewSignal() Signal { return make(Signal, 1) }

// Raise wakes the waiter, or the next one. It does not block.
func (s Signal) Raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Clear takes the token back, if it is there.
func (s Signal) Clear() { over(s) }

// sleeping reports whether the background owner sleeps, or is about to.
func (d *Driver) sleeping() bool { return d.Phase() == Sleeping }

// wake ends the sleep of the background owner: deadlines may be nearer than it knows. The owner of the engine calls it.
func (d *Driver) wake() {
	if d.sleeping() && d.phase.CompareAndSwap(uint32(Sleeping), uint32(Polling)) {
		d.link.Wake()
	}
}

// handOver tells the background owner that a caller stops driving.
func (d *Driver) handOver() {
	select {
	case d.handover <- struct{}{}:
	default:
	}
}

// halt ends the background owner and waits for its end.
func (d *Driver) halt() {
	close(d.stop)
	d.link.Wake()
	<-d.done
}

// over reports whether a channel is closed, or takes a token from it.
func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
