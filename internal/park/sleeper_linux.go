package park

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Sleeper puts one goroutine to sleep. The runtime's network poller watches the Sleeper's epoll descriptor. That epoll
// instance watches three descriptors: the one that the caller of Sleep names, an eventfd that ends the sleep, and a
// timerfd. The timer is a timerfd because the network poller rounds the timers of the runtime to milliseconds.
type Sleeper struct {
	file  *os.File        // the epoll descriptor
	conn  syscall.RawConn // of file
	epoll int             // of file
	timer int

	inUse  atomic.Bool        // a goroutine is inside Sleep
	fd     int                // the descriptor that Sleep watches
	armed  bool               // the epoll instance watches fd
	ready  func(uintptr) bool // isReady, so that Sleep allocates nothing
	events [3]unix.EpollEvent // of isReady; one for each descriptor
}

// Open makes a Sleeper. A write to the eventfd ends the sleep. The caller still owns the eventfd.
//
// System calls: epoll_create1, timerfd_create, epoll_ctl, fcntl.
func Open(eventfd int) (_ *Sleeper, err error) {
	s := &Sleeper{epoll: -1, timer: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	if s.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	for _, fd := range []int{eventfd, s.timer} {
		if err = s.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN); err != nil {
			return nil, fmt.Errorf("epoll_ctl: %w", err)
		}
	}
	if err = unix.SetNonblock(s.epoll, true); err != nil { // so that NewFile gives it to the network poller
		return nil, fmt.Errorf("fcntl: %w", err)
	}
	s.file = os.NewFile(uintptr(s.epoll), "epoll")
	s.ready = s.isReady
	s.conn, err = s.file.SyscallConn()
	return s, err
}

// Sleep sleeps until fd or the eventfd is readable, or the time d has passed. If d is negative, there is no time limit.
// Sleep may return early. It returns false if it cannot sleep, because another goroutine sleeps.
//
// System calls: epoll_ctl, timerfd_settime, epoll_wait.
func (s *Sleeper) Sleep(fd int, d time.Duration) bool {
	if !s.inUse.CompareAndSwap(false, true) {
		return false
	}
	defer s.inUse.Store(false)
	defer s.disarm()
	if s.arm(fd, d) != nil {
		return false
	}
	return s.conn.Read(s.ready) == nil
}

// arm starts to watch fd, and sets the timer.
func (s *Sleeper) arm(fd int, d time.Duration) error {
	err := s.control(unix.EPOLL_CTL_MOD, fd, unix.EPOLLIN|unix.EPOLLONESHOT)
	if err == unix.ENOENT { // the first sleep, or the caller has replaced the descriptor
		err = s.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLONESHOT)
	}
	if err != nil {
		return err
	}
	s.fd, s.armed = fd, true
	var expiry unix.ItimerSpec // zero stops the timer
	if d >= 0 {
		expiry.Value = unix.NsecToTimespec(max(1, int64(d)))
	}
	return unix.TimerfdSettime(s.timer, 0, &expiry, nil)
}

// disarm stops watching the descriptor. Otherwise each packet that arrives while nobody sleeps would wake a thread of
// the network poller (decision 0013 has the cost).
func (s *Sleeper) disarm() {
	if s.armed {
		s.armed = false
		_ = s.control(unix.EPOLL_CTL_MOD, s.fd, 0) // fails if the caller has closed the descriptor
	}
}

// isReady reports whether a descriptor is readable. The runtime calls it before the goroutine blocks, and again after
// the network poller has woken the goroutine.
func (s *Sleeper) isReady(uintptr) bool {
	n, _ := unix.EpollWait(s.epoll, s.events[:], 0) // an error ends the sleep early
	for _, e := range s.events[:max(n, 0)] {
		if int(e.Fd) == s.fd {
			s.armed = false // EPOLLONESHOT
		}
	}
	return n != 0
}

func (s *Sleeper) control(op, fd int, events uint32) error {
	return unix.EpollCtl(s.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// Close releases the descriptors.
func (s *Sleeper) Close() error {
	var errs []error
	switch {
	case s.file != nil:
		errs = append(errs, s.file.Close())
	case s.epoll >= 0:
		errs = append(errs, unix.Close(s.epoll))
	}
	if s.timer >= 0 {
		errs = append(errs, unix.Close(s.timer))
	}
	return errors.Join(errs...)
}
