package udplink

import (
	"fmt"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

const (
	// errBatch is the number of messages that one system call takes from the error queue. maxRefused is the number of
	// reports that may wait for the owner; further reports are dropped.
	errBatch   = 32
	maxRefused = 32
	// errControl is the space in bytes for the control messages of an entry in the error queue: the ECN bits,
	// sock_extended_err, and the address of the router or host that reported the error.
	errControl = 128
)

// Offsets of origin, type and code in sock_extended_err, and the types of destination unreachable.
const (
	offOrigin, offType, offCode = 4, 5, 6

	icmpUnreachable  = 3
	icmp6Unreachable = 1
)

// errQueue reads the error queue of a socket (IP_RECVERR), which contains the ICMP messages about packets that the
// socket sent. The queue needs no polling: when there is a new message, the next call on the socket fails. Unread
// messages occupy the receive buffer. The data of a message is the quoted UDP payload.
type errQueue struct {
	pending atomic.Bool // a call on the socket returned an error, or Wait saw one

	refused [maxRefused]link.Report
	n       int // used entries of refused

	quotes  [errBatch][link.QuoteSize]byte
	iovs    [errBatch]unix.Iovec
	msgs    [errBatch]mmsghdr
	names   [errBatch]sockaddr
	control [errBatch][errControl]byte
}

// open enables the error queue.
//
// System calls: setsockopt.
func (q *errQueue) open(fd int, addr netip.Addr) error {
	level, code := unix.IPPROTO_IP, unix.IP_RECVERR
	if addr.Is6() {
		level, code = unix.IPPROTO_IPV6, unix.IPV6_RECVERR
	}
	if err := unix.SetsockoptInt(fd, level, code, 1); err != nil {
		return fmt.Errorf("set IP_RECVERR: %w", err)
	}
	return nil
}

// drain reads the messages that one system call returns. If more remain, the next call on the socket fails again.
//
// System calls: recvmmsg, twice if the first call returns the socket's pending error.
func (q *errQueue) drain(fd int, zone string) {
	q.pending.Store(false)
	for i := range q.msgs {
		h := &q.msgs[i].hdr
		h.Name, h.Namelen = &q.names[i][0], uint32(len(q.names[i]))
		h.Control = &q.control[i][0]
		h.SetControllen(errControl)
		q.iovs[i].Base = &q.quotes[i][0]
		q.iovs[i].SetLen(link.QuoteSize)
		h.Iov = &q.iovs[i]
		h.SetIovlen(1)
	}
	got, err := recvErrors(fd, q.msgs[:])
	if err != nil && err != unix.EAGAIN {
		got, _ = recvErrors(fd, q.msgs[:])
	}
	for i := range got {
		used := min(errControl, int(q.msgs[i].hdr.Controllen))
		if why, ok := unreachable(q.control[i][:used]); ok {
			q.report(q.names[i].addrPort(zone), why, q.quotes[i][:min(link.QuoteSize, q.msgs[i].n)])
		}
	}
	if got == errBatch {
		q.pending.Store(true)
	}
}

// report stores a report for the owner: the destination of a packet, why it did not arrive, and its beginning.
func (q *errQueue) report(at netip.AddrPort, why link.Refusal, quote []byte) {
	if q.n < maxRefused {
		q.refused[q.n].To, q.refused[q.n].Why = at, why
		q.refused[q.n].SetQuoted(quote)
		q.n++
	}
}

// take moves waiting reports into the slice and returns their number.
func (q *errQueue) take(reports []link.Report) int {
	n := copy(reports, q.refused[:q.n])
	q.n = copy(q.refused[:], q.refused[n:q.n])
	return n
}

// unreachable returns the reason in the control messages if they contain an error of destination unreachable. The kernel
// of this host reports a neighbour that does not answer in the same way.
func unreachable(b []byte) (why link.Refusal, ok bool) {
	for kind, data, rest, ok := nextControl(b); ok; kind, data, rest, ok = nextControl(rest) {
		if len(data) <= offCode {
			continue
		}
		origin, message, code := data[offOrigin], data[offType], data[offCode]
		switch kind {
		case controlKind{unix.IPPROTO_IP, unix.IP_RECVERR}:
			why, ok = link.Refusal4(code)
			return why, ok && origin == unix.SO_EE_ORIGIN_ICMP && message == icmpUnreachable
		case controlKind{unix.IPPROTO_IPV6, unix.IPV6_RECVERR}:
			return link.Refusal6(code), origin == unix.SO_EE_ORIGIN_ICMP6 && message == icmp6Unreachable
		}
	}
	return 0, false
}
