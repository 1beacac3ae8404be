package xdp

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/park"
)

// waiting is the state of the methods Wait and Wake. The methods Wait, Wake and Stats hold the lock mu for reading. The
// methods Close and reopen hold this lock for writing, so they unmap no memory while one of the other three methods
// runs.
type waiting struct {
	mu       sync.RWMutex
	closed   atomic.Bool
	leave    atomic.Bool // reopen waits for mu: Wait must return
	woken    atomic.Bool
	sleepers atomic.Int32
	event    int // eventfd
	sleeper  *park.Sleeper
}

// Wait implements link.Link.
//
// System calls: those of park.Sleeper.Sleep; after a Wake also read(2).
func (s *Socket) Wait(d time.Duration) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.leaving() || s.woken.Swap(false) || s.arrived() {
		return
	}
	s.sleepers.Add(1)
	defer s.sleepers.Add(-1)
	if s.leaving() || s.woken.Swap(false) {
		return
	}
	if s.stall.Load() == pending && (d < 0 || d > pendingPoll) {
		d = pendingPoll
	}
	s.sleep(d)
}

// leaving reports whether Wait must return because Close or reopen needs mu.
func (s *Socket) leaving() bool { return s.closed.Load() || s.leave.Load() }

// arrived reports whether the rx ring or the mailbox holds a packet. Any goroutine may call it.
func (s *Socket) arrived() bool {
	return s.mail.waiting.Load() > 0 || atomic.LoadUint32(s.rx.producer) != atomic.LoadUint32(s.rx.consumer)
}

// sleep waits in the runtime's network poller (package park). In copy mode it also transmits what the kernel has left in
// the tx ring.
func (s *Socket) sleep(d time.Duration) {
	cause := s.sleeper.Sleep(s.fd, d)
	s.counters.wakeups.Add(1)
	if cause&park.Rung != 0 {
		s.drainEvent()
		s.woken.Store(false)
		if s.leaving() { // Close and reopen wake every Wait, so pass the event on
			_, _ = unix.Write(s.event, one[:])
		}
	}
	if cause&park.Failed != 0 {
		// The interface is gone. Reading the error clears it; otherwise the next poll would return immediately.
		_, _ = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	}
}

// drainEvent makes the eventfd unreadable.
func (s *Socket) drainEvent() {
	var b [8]byte
	_, _ = unix.Read(s.event, b[:])
}

// Wake implements link.Link. System calls: write, when there is a Wait to release.
func (s *Socket) Wake() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.closed.Load() {
		s.signal()
	}
}

// signal makes a sleeping Wait return. If no Wait sleeps, the next Wait returns at once.
func (s *Socket) signal() {
	if s.woken.Swap(true) && !s.closed.Load() {
		return
	}
	if s.sleepers.Load() > 0 || s.closed.Load() {
		_, _ = unix.Write(s.event, one[:])
	}
}

var one = [8]byte{1, 1, 1, 1, 1, 1, 1, 1} // Wake adds this to the eventfd: any value but 0
