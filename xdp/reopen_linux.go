package xdp

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

// reopen gives the queue up and takes it again in a mode, over the same frames. What the owner holds stays valid. Packets
// that the kernel had to transmit are lost and counted, those it had received are lost. The caller is the owner, in the
// network namespace of the interface. After an error every verb finds nothing, until another reopen.
func (s *Socket) reopen(mode Mode) error {
	s.leave.Store(true) // no Wait begins
	defer s.leave.Store(false)
	_, _ = unix.Write(s.event, one[:]) // and none lasts
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return fmt.Errorf("xdp: %v: %w", s.place, net.ErrClosed)
	}
	s.calm()
	s.keepStats()
	err := s.giveUp()
	s.recall()
	if mode != ZeroCopy {
		s.place.ring = 0
	}
	s.place.mode = mode
	sg := s.sg
	if err = errors.Join(err, s.take(s.place)); err == nil && s.sg != sg {
		err = fmt.Errorf("packets of several frames are not granted in %s mode: %w", mode, link.ErrUnsupported)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("xdp: %v: %w", s.place, err), s.giveUp())
	}
	s.lowered.Store(s.caps.Mode == string(ZeroCopy) && !s.zc)
	s.stall.Store(flowing)
	return nil
}

// keepStats remembers what the kernel counted for a socket that is given up.
func (s *Socket) keepStats() {
	s.kernelMu.Lock()
	defer s.kernelMu.Unlock()
	var k unix.XDPStatistics
	if s.fd >= 0 && getOption(s.fd, unix.SOL_XDP, unix.XDP_STATISTICS, &k) == nil {
		s.past = plus(s.past, k)
		s.kernel = s.past
	}
}

// recall takes the frames of a socket that was given up back from the kernel. A device that still has some reads and
// writes them until the queue is free, and before that nothing is bound to it.
func (s *Socket) recall() {
	s.counters.kernelDropped.Add(uint64(s.pool.count[isSent]))
	for f := range s.pool.notes {
		if was := s.pool.notes[f].state; was == isFill || was == isSent {
			s.pool.give(uint32(f), was)
		}
	}
	s.lent, s.skip = s.lent[:0], false
	s.nudges, s.stuck = nudges{}, unstick{}
}
