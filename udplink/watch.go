package udplink

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/link"
)

// addressGrace is the time for which the address may be missing before the link ends. It is that of an AF_XDP device:
// long enough to take an interface down and up again.
const addressGrace = 5 * time.Second

// Keeper receives the events of a link. All calls come from one goroutine, and Close waits for its end.
type Keeper interface {
	// Changed reports a change as text. queue is -1. harmful is true if the change disturbs the traffic.
	Changed(queue int, harmful bool, text string)
	// Ended reports that the link no longer works, and why. The link makes no call after it.
	Ended(err error)
}

// watching is the state of a link that Watch shares with other goroutines.
type watching struct {
	watcher sync.WaitGroup
	closing sync.Once
	quit    chan struct{}         // closed to stop watcher
	ended   atomic.Pointer[error] // why the link has ended
	grace   time.Duration         // addressGrace
}

func (w *watching) stop() {
	w.closing.Do(func() { close(w.quit) })
	w.watcher.Wait()
}

// presence tells whether the host has the address of a link.
type presence interface {
	Present() bool
	Changes() <-chan struct{} // has a token when the result of Present has changed
}

// Watch ends the link if its address is removed from the host and does not come back within 5 s. Resolve then returns the
// error of Keeper.Ended. Without Watch a link waits for the address for ever, as a UDP socket does. Watch does nothing on
// operating systems other than Linux, and for loopback addresses. Call it once, before Close.
func (l *Link) Watch(k Keeper) {
	if p := l.presence(); p != nil && p.Present() {
		l.watcher.Go(func() { l.watch(p, k) })
	}
}

// watch runs until the address has been missing for the time grace, or until Close.
func (l *Link) watch(p presence, k Keeper) {
	var missing <-chan time.Time // nil while the host has the address
	for {
		select {
		case <-l.quit:
			return
		case <-missing:
			why := fmt.Errorf("udplink: the address %v was removed: close the adapter and open it again: %w", l.local.Addr(), link.ErrUnreachable)
			l.ended.Store(&why)
			k.Ended(why)
			return
		case <-p.Changes():
		}
		switch has := p.Present(); {
		case has && missing != nil:
			missing = nil
			k.Changed(-1, false, fmt.Sprintf("the address %v is back", l.local.Addr()))
		case !has && missing == nil:
			missing = time.After(l.grace)
			k.Changed(-1, true, fmt.Sprintf("the address %v was removed", l.local.Addr()))
		}
	}
}
