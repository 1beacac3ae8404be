package progress

import (
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/wire"
)

// network lets the scheduler of the Go runtime find network events while goroutines spin. The scheduler looks at the
// network only when no goroutine is runnable, and a goroutine that spins with runtime.Gosched is always runnable. The
// runtime's monitor thread, which looks every 10 ms, is too late. So a goroutine that spins asks the kernel at
// intervals whether network events wait. If so, the goroutine makes an eventfd readable, which adds one more network
// event, and then blocks until the scheduler finds this event. When all other goroutines block too, the scheduler looks
// at the network and finds all events.
//
// The zero network does nothing.
type network struct {
	file  *os.File        // the eventfd
	conn  syscall.RawConn // of file; nil if there is no eventfd
	epoll int             // the epoll descriptor of the runtime's network poller; -1 if unknown

	left  bool               // the read has blocked; guarded by the read lock of file
	block func(uintptr) bool // tryRead, so that a read allocates nothing
}

// looks is what the spinning goroutines of the process know about network events.
var looks struct {
	due     atomic.Int64 // wire.Time of the next look
	found   atomic.Int64 // wire.Time of the last look that found events
	waiting atomic.Int32 // number of looks in sequence at which events waited
	leaving atomic.Int32 // number of goroutines that block
}

// The method open prepares n. If the eventfd cannot be made, the methods of n do nothing. Then the monitor thread of the
// Go runtime (sysmon) finds the network events, at intervals of 10 ms.
//
// System calls: eventfd2; to find the descriptor of the network poller: open, read and readlink in /proc/self.
func (n *network) open() {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return
	}
	n.file = os.NewFile(uintptr(fd), "eventfd")
	if n.conn, err = n.file.SyscallConn(); err != nil {
		n.close()
		return
	}
	n.block = n.tryRead
	n.epoll = epollOf(fd)
}

// close releases the eventfd.
func (n *network) close() {
	if n.file != nil {
		_ = n.file.Close() // closing an eventfd loses nothing
	}
}

// epollOf returns the descriptor of the epoll instance that watches fd, or -1. proc_pid_fdinfo(5) describes the format.
func epollOf(fd int) int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	for _, e := range all {
		if kind, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil || kind != "anon_inode:[eventpoll]" {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(info)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "tfd:" && f[1] == strconv.Itoa(fd) {
				epoll, _ := strconv.Atoi(e.Name()) // the name of a file in /proc/self/fd is a number
				return epoll
			}
		}
	}
	return -1
}

// A goroutine that spins calls the method look after each pass. If network events wait and no other thread takes them,
// the method blocks until the scheduler has polled the network. The scheduler does that when no goroutine is runnable.
//
// System calls: poll, once per interval, whatever the number of spinning goroutines. If events wait, also sched_yield
// or write; after a write the scheduler calls epoll_wait.
func (n *network) look(now wire.Time, c *cores) {
	if n.conn == nil {
		return
	}
	if now < wire.Time(looks.due.Load()) {
		if looks.leaving.Load() > 0 && singleProcessor() { // the scheduler looks when this goroutine blocks too
			n.leave()
		}
		return
	}
	switch {
	case !n.waits(now):
		looks.waiting.Store(0)
	case singleProcessor() || looks.waiting.Add(1) > patientLooks:
		n.leave()
	default: // an idle thread takes the events as soon as it has a core
		c.yieldThread()
	}
}

func singleProcessor() bool { return runtime.GOMAXPROCS(0) == 1 }

// The method leave blocks until the network poller has found the goroutine's event.
func (n *network) leave() {
	looks.leaving.Add(1)
	_ = n.conn.Read(n.block) // fails if n is closed
	looks.leaving.Add(-1)
	looks.waiting.Store(0)
}

// The method waits reports whether the network poller has events that no thread has taken. If the descriptor of the
// poller is unknown, it returns true. It also sets the time of the next look.
func (n *network) waits(now wire.Time) bool {
	if n.epoll < 0 {
		looks.due.Store(int64(now.Add(blindInterval)))
		return true
	}
	interval := lookInterval
	if now.Sub(wire.Time(looks.found.Load())) < soonAfter {
		interval = soonInterval
	}
	looks.due.Store(int64(now.Add(interval)))
	fds := [1]unix.PollFd{{Fd: int32(n.epoll), Events: unix.POLLIN}}
	ready, err := unix.Poll(fds[:], 0)
	if ready <= 0 || err != nil {
		return false
	}
	looks.found.Store(int64(now))
	return true
}

// tryRead is the function that the method leave passes to RawConn.Read. RawConn.Read calls tryRead until tryRead
// returns true. The first call makes the eventfd readable and returns false, so that the goroutine blocks until the
// network poller finds this event. The second call returns true. Neither call reads the eventfd: the poller is
// edge-triggered, so it reports a write even if the preceding write was not read.
func (n *network) tryRead(fd uintptr) bool {
	if n.left = !n.left; n.left {
		_, _ = unix.Write(int(fd), one[:])
	}
	return !n.left
}

var one = binary.NativeEndian.AppendUint64(nil, 1)
