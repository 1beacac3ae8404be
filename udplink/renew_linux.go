package udplink

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// patience is the time for which most packets of a kind may find no room before the socket is renewed.
const patience = time.Second

// congestion detects that most packets of a kind have found no room in the send buffer for at least the time patience.
type congestion struct {
	begun           time.Time // first refusal of the period
	refused, passed uint64    // packets in the period
	stuck           bool
}

// refuse counts packets that found no room.
func (c *congestion) refuse(packets uint64) {
	now := time.Now()
	switch {
	case c.begun.IsZero():
		*c = congestion{begun: now}
	case now.Sub(c.begun) >= patience:
		*c = congestion{begun: now, stuck: c.refused+packets > c.passed}
	}
	c.refused += packets
}

// renewal is what the link needs to replace its kernel socket.
//
// A packet occupies the send buffer until the kernel has delivered it or given it to a device. Over a veth, an
// administrator of the receiving network namespace can keep packets there for any time. The packets of a closed socket
// stay with the kernel, but the new socket has an empty send buffer.
type renewal struct {
	buffer    int         // Options.Buffer
	device    string      // Options.Interface
	offload   bool        // the socket uses offloads
	namespace os.FileInfo // network namespace of the socket; nil if unknown
	full      congestion  // of the whole send buffer
}

func (r *renewal) open(o Options) {
	r.buffer, r.device, r.offload = o.Buffer, o.Interface, !o.NoOffload
	r.namespace, _ = os.Stat(threadNamespace) // without /proc the link works, but is never renewed
}

const threadNamespace = "/proc/thread-self/ns/net"

// renewIfStuck renews the socket if packets have found no room for a while. If that fails, the old socket remains, and
// a later call tries again.
func (s *batch) renewIfStuck() {
	if !s.renewal.full.stuck && !s.gate.full.stuck {
		return
	}
	s.renewal.full, s.gate.full = congestion{}, congestion{}
	if s.renew() == nil && s.gate.empty() == nil {
		s.lost = 0
		s.bell.ring() // a waiter polls the old socket
	}
}

// renew replaces the socket by a new one with the same address, port and descriptor number. Received packets that wait
// in the old socket are lost. Both sockets have the port for a moment, so no other program can take it. SO_REUSEPORT,
// unlike SO_REUSEADDR, permits this only to sockets of one user.
//
// System calls: stat, socket, setsockopt, bind, dup3, close.
func (s *batch) renew() (err error) {
	here, err := os.Stat(threadNamespace)
	if err != nil || s.renewal.namespace == nil || !os.SameFile(here, s.renewal.namespace) {
		return errors.Join(err, errors.New("udplink: renew: the thread is in another network namespace"))
	}
	local := s.link.local
	fd, err := unix.Socket(family(local.Addr()), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	share := func(fd, on int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, on) }
	defer func() { err = errors.Join(err, share(s.fd, 0)) }()
	if err := errors.Join(share(s.fd, 1), share(fd, 1)); err != nil {
		return err
	}
	if err := prepare(fd, local, s.renewal.device, s.renewal.buffer); err != nil {
		return err
	}
	if err := s.errs.open(fd, local.Addr()); err != nil {
		return err
	}
	if s.renewal.offload {
		s.offload.open(fd)
	}
	return unix.Dup3(fd, s.fd, unix.O_CLOEXEC)
}
