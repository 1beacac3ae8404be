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
// System calls: ppoll, which in copy mode also transmits; those of park.Sleeper; read, after a Wake.
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
	s.parkOrPoll(d)
}

// leaving reports whether Wait must return because Close or reopen needs mu.
func (s *Socket) leaving() bool { return s.closed.Load() || s.leave.Load() }

// arrived reports whether the rx ring holds a packet. Any goroutine may call it.
func (s *Socket) arrived() bool {
	return atomic.LoadUint32(s.rx.producer) != atomic.LoadUint32(s.rx.consumer)
}

// parkOrPoll sleeps without a processor of the Go scheduler (package park). If another goroutine sleeps in this way
// already, parkOrPoll calls ppoll, which keeps a processor.
func (s *Socket) parkOrPoll(d time.Duration) {
	fds := [2]unix.PollFd{
		{Fd: int32(s.event), Events: unix.POLLIN},
		{Fd: int32(s.fd), Events: unix.POLLIN},
	}
	var now unix.Timespec
	n, err := unix.Ppoll(fds[:], &now, nil)
	if n == 0 && err == nil && d != 0 {
		limit := &now
		if !s.sleeper.Sleep(s.fd, d) {
			limit = timespec(d)
		}
		_, err = unix.Ppoll(fds[:], limit, nil)
	}
	s.counters.wakeups.Add(1)
	if err != nil {
		return
	}
	if fds[0].Revents != 0 {
		s.drainEvent()
		s.woken.Store(false)
		if s.leaving() { // Close and reopen wake every Wait, so pass the event on
			_, _ = unix.Write(s.event, one[:])
		}
	}
	if fds[1].Revents&unix.POLLERR != 0 {
		// The interface is gone. Reading the error clears it; otherwise the next poll would return immediately.
		_, _ = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	}
}

// timespec converts a limit; a negative one means for ever.
func timespec(d time.Duration) *unix.Timespec {
	if d < 0 {
		return nil
	}
	ts := unix.NsecToTimespec(int64(d))
	return &ts
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
