package udplink

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/park"
)

// bell is an eventfd that wakes the goroutines that poll it. It is a semaphore (EFD_SEMAPHORE): each waiter consumes
// one count. If counts are left over, a later wait returns early, which is allowed.
type bell struct {
	fd      int
	sleeper *park.Sleeper
	rung    atomic.Bool // rung and not yet consumed: another ring needs no system call
	waiters atomic.Int32
	closed  atomic.Bool
	inUse   sync.RWMutex // read-locked while fd may be used, write-locked to close it
}

func (b *bell) open() (err error) {
	if b.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK|unix.EFD_SEMAPHORE); err != nil {
		return err
	}
	b.sleeper, err = park.Open(b.fd)
	return err
}

// ring wakes every waiter. If there is none, the next wait returns at once.
//
// System calls: write.
func (b *bell) ring() {
	if b.rung.Swap(true) {
		return
	}
	b.inUse.RLock()
	defer b.inUse.RUnlock()
	if !b.closed.Load() {
		b.add(max(1, int(b.waiters.Load())))
	}
}

// add ignores the error of write: the counter cannot reach its limit.
func (b *bell) add(n int) {
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], uint64(n))
	_, _ = unix.Write(b.fd, word[:])
}

// consume takes one count, if there is one. It resets rung before the read, so that a ring after the read writes again.
func (b *bell) consume() {
	var word [8]byte
	b.rung.Store(false)
	_, _ = unix.Read(b.fd, word[:]) // another waiter may have consumed it
}

// close releases every waiter and waits for them. It reports whether this call closed the bell.
func (b *bell) close() bool {
	if b.closed.Swap(true) {
		return false
	}
	b.add(1 << 30) // more than the largest number of waiters
	b.inUse.Lock()
	defer b.inUse.Unlock()
	if b.sleeper != nil {
		_ = b.sleeper.Close() // closing these loses nothing
	}
	_ = unix.Close(b.fd)
	return true
}

// wait sleeps until the socket is readable, the bell rings or d has passed. It returns at once if recv has not returned
// all packets of the received messages.
//
// System calls: those of park.Sleeper.Sleep; read.
func (s *batch) wait(d time.Duration) {
	if d == 0 {
		return
	}
	b := &s.bell
	b.inUse.RLock()
	defer b.inUse.RUnlock()
	if b.closed.Load() {
		return
	}
	b.waiters.Add(1)
	defer b.waiters.Add(-1)
	if s.unread.Load() { // a recv that sets unread later sees this waiter, and rings
		return
	}
	cause := b.sleeper.Sleep(s.fd, d)
	s.link.stats.wakeups.Add(1)
	if cause&park.Rung != 0 {
		b.consume()
	}
	if cause&park.Failed != 0 {
		s.errs.pending.Store(true)
	}
}

func (s *batch) wake() { s.bell.ring() }
