package park

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Sleeper puts goroutines to sleep. The runtime's network poller watches the Sleeper's epoll descriptor. That epoll
// instance watches three descriptors: the one that the caller of Sleep names, an eventfd that ends the sleep, and a
// timerfd. The timer is a timerfd because the network poller rounds the timers of the runtime to milliseconds.
type Sleeper struct {
	file  *os.File        // the epoll descriptor
	conn  syscall.RawConn // of file
	epoll int             // of file
	timer int
	bell  int // the eventfd

	inUse  atomic.Bool        // a goroutine sleeps in the network poller
	fd     int                // the descriptor that Sleep watches
	armed  bool               // the epoll instance watches fd
	ready  func(uintptr) bool // isReady, so that Sleep allocates nothing
	events [3]unix.EpollEvent // of isReady; one for each descriptor
	cause  Cause              // result of isReady
}

// Open makes a Sleeper. A write to the eventfd ends the sleep. The caller still owns the eventfd.
//
// System calls: epoll_create1, timerfd_create, epoll_ctl, fcntl.
func Open(eventfd int) (_ *Sleeper, err error) {
	s := &Sleeper{epoll: -1, timer: -1, bell: eventfd}
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

// Cause has a bit for each descriptor that ended a sleep. No bit is set if the time has passed.
type Cause uint8

// Bits of a Cause.
const (
	Readable Cause = 1 << iota // the descriptor is readable, or has an error
	Failed                     // the descriptor has an error
	Rung                       // the eventfd is readable
)

// holders is the number of goroutines of the process that sleep in ppoll.
var holders atomic.Int32

// Sleep sleeps until fd or the eventfd is readable, or the time d has passed. If d is negative, there is no time limit.
// Sleep may return early.
//
// As poll(2) does, Sleep calls the poll function of the file, which in a socket of AF_XDP starts transmission.
//
// System calls: ppoll; or epoll_ctl, timerfd_settime, epoll_wait.
func (s *Sleeper) Sleep(fd int, d time.Duration) Cause {
	if int(holders.Add(1)) < runtime.GOMAXPROCS(0) || d == 0 {
		defer holders.Add(-1)
		return s.poll(fd, d)
	}
	holders.Add(-1)
	if !s.inUse.CompareAndSwap(false, true) {
		return s.poll(fd, d)
	}
	defer s.inUse.Store(false)
	defer s.disarm()
	if s.arm(fd, d) != nil {
		return s.poll(fd, d)
	}
	s.cause = 0
	_ = s.conn.Read(s.ready) // fails only if s is closed
	return s.cause
}

// The method poll is Sleep by ppoll(2).
func (s *Sleeper) poll(fd int, d time.Duration) (cause Cause) {
	fds := [...]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(s.bell), Events: unix.POLLIN}}
	var limit *unix.Timespec
	if d >= 0 {
		ts := unix.NsecToTimespec(int64(d))
		limit = &ts
	}
	if n, err := unix.Ppoll(fds[:], limit, nil); n <= 0 || err != nil { // an interrupted call is an early return
		return 0
	}
	return causeOf(uint32(fds[0].Revents), uint32(fds[1].Revents))
}

// causeOf translates the events of the descriptor and of the eventfd. Those of poll and of epoll have the same values.
func causeOf(fd, bell uint32) (cause Cause) {
	if fd != 0 {
		cause |= Readable
	}
	if fd&unix.EPOLLERR != 0 {
		cause |= Failed
	}
	if bell != 0 {
		cause |= Rung
	}
	return cause
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
		switch int(e.Fd) {
		case s.fd:
			s.armed = false // EPOLLONESHOT
			s.cause |= causeOf(e.Events, 0)
		case s.bell:
			s.cause |= causeOf(0, e.Events)
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
