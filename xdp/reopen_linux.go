package xdp

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

// opening is how the kernel socket was opened, for reopen, which replaces it.
type opening struct {
	place   place
	options Options
	lowered atomic.Bool // reopen went from zero-copy to copy mode
}

// reopen closes the kernel socket and opens another in the given mode, with the same queue and frames. Frames that the
// owner holds stay valid. Packets that waited for transmission are lost and counted. Packets that waited in the rx ring
// are lost and not counted. The caller must be the owner of the socket, and its thread must be in the interface's
// network namespace. After an error the rings are empty until another reopen succeeds.
func (s *Socket) reopen(mode Mode) error {
	s.leave.Store(true) // a new Wait returns at once
	defer s.leave.Store(false)
	_, _ = unix.Write(s.event, one[:]) // and makes the running ones return
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return fmt.Errorf("xdp: %v: %w", s.place, net.ErrClosed)
	}
	s.drainEvent()
	s.keepStats()
	err := s.destroySocket()
	s.reclaimFrames()
	if mode != ZeroCopy {
		s.place.ring = 0
	}
	s.place.mode = mode
	sg := s.sg
	if err = errors.Join(err, s.createSocket(s.place)); err == nil && s.sg != sg {
		err = fmt.Errorf("packets of several frames are not granted in %s mode: %w", mode, link.ErrUnsupported)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("xdp: %v: %w", s.place, err), s.destroySocket())
	}
	s.lowered.Store(s.caps.Mode == string(ZeroCopy) && !s.zc)
	s.stall.Store(flowing)
	return nil
}

// keepStats saves the kernel's counters before the socket is closed.
func (s *Socket) keepStats() {
	s.kernelMu.Lock()
	defer s.kernelMu.Unlock()
	var k unix.XDPStatistics
	if s.fd >= 0 && getOption(s.fd, unix.SOL_XDP, unix.XDP_STATISTICS, &k) == nil {
		s.past = plus(s.past, k)
		s.kernel = s.past
	}
}

// reclaimFrames returns the kernel's frames of a closed socket to the pool. The NIC may access these frames until the
// queue is free. Until then no frame is used again, because the bind of the new socket (bindRetry) waits for the queue.
func (s *Socket) reclaimFrames() {
	s.counters.kernelDropped.Add(uint64(s.pool.inFlight()))
	for f := range s.pool.notes {
		if was := s.pool.notes[f].state; was == isFill || s.pool.transmitted(uint32(f)) {
			s.pool.give(uint32(f), was)
		}
	}
	s.lent, s.skip = s.lent[:0], false
	s.rxWakeups, s.txStall = rxWakeups{}, txStall{}
}
