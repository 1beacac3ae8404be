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

// Bench is a place where one goroutine sleeps. The runtime's network poller watches an epoll descriptor, which watches
// the descriptor of the caller, an eventfd that wakes the sleeper, and a timer. The timer is a timerfd because the
// network poller rounds the timers of the runtime to milliseconds.
type Bench struct {
	file  *os.File        // the epoll descriptor
	conn  syscall.RawConn // of file
	epoll int             // of file
	timer int

	taken  atomic.Bool // a goroutine is inside Wait
	ready  func(uintptr) bool
	events [4]unix.EpollEvent // of ready; one for each descriptor
}

// Open makes a Bench. The eventfd wakes its sleeper; it stays the caller's.
//
// System calls: epoll_create1, timerfd_create, epoll_ctl, fcntl.
func Open(eventfd int) (_ *Bench, err error) {
	b := &Bench{epoll: -1, timer: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if b.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	if b.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	for _, fd := range []int{eventfd, b.timer} {
		e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
		if err = unix.EpollCtl(b.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
			return nil, fmt.Errorf("epoll_ctl: %w", err)
		}
	}
	if err = unix.SetNonblock(b.epoll, true); err != nil { // so that NewFile gives it to the network poller
		return nil, fmt.Errorf("fcntl: %w", err)
	}
	b.file = os.NewFile(uintptr(b.epoll), "epoll")
	b.ready = b.look
	b.conn, err = b.file.SyscallConn()
	return b, err
}

// Wait sleeps until fd or the eventfd is readable, or the time d has passed; a negative d means for ever. It returns
// false if it cannot sleep, because another goroutine does. It may return early.
//
// System calls: epoll_ctl, timerfd_settime, epoll_wait.
func (b *Bench) Wait(fd int, d time.Duration) bool {
	if !b.taken.CompareAndSwap(false, true) {
		return false
	}
	defer b.taken.Store(false)
	if b.arm(fd, d) != nil {
		return false
	}
	return b.conn.Read(b.ready) == nil
}

// arm starts to watch fd, for one event: while no goroutine sleeps, packets cost no wake-up. It also sets the timer.
func (b *Bench) arm(fd int, d time.Duration) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(fd)}
	err := unix.EpollCtl(b.epoll, unix.EPOLL_CTL_MOD, fd, &e)
	if err == unix.ENOENT { // the first wait, or the caller has replaced the descriptor
		err = unix.EpollCtl(b.epoll, unix.EPOLL_CTL_ADD, fd, &e)
	}
	if err != nil {
		return err
	}
	var at unix.ItimerSpec // zero stops the timer
	if d >= 0 {
		at.Value = unix.NsecToTimespec(max(1, int64(d)))
	}
	return unix.TimerfdSettime(b.timer, 0, &at, nil)
}

// look reports whether a descriptor is readable. It is called before the goroutine blocks, and after the network poller
// has woken it.
func (b *Bench) look(uintptr) bool {
	n, _ := unix.EpollWait(b.epoll, b.events[:], 0)
	return n != 0 // an error ends the wait early
}

// Close releases the descriptors.
func (b *Bench) Close() error {
	var errs []error
	switch {
	case b.file != nil:
		errs = append(errs, b.file.Close())
	case b.epoll >= 0:
		errs = append(errs, unix.Close(b.epoll))
	}
	if b.timer >= 0 {
		errs = append(errs, unix.Close(b.timer))
	}
	return errors.Join(errs...)
}
