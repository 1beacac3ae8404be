package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// checkHolders looks for AF_XDP sockets of other programs on the interface.
func checkHolders(ctx context.Context, x *exam) []Finding {
	sockets, err := netlink.SocketDiagXDP()
	switch {
	case err == nil:
		return x.listed(ctx, sockets)
	case xdpSockets() == 0:
		return ok("no AF_XDP socket has a queue of %s", x.name())
	case x.explaining:
		return nil // opening the adapter has already reported a busy queue
	case has(x.caps, unix.CAP_NET_RAW):
		return x.bound(ctx)
	}
	return info("which queues AF_XDP sockets have cannot be read here: it takes CONFIG_XDP_SOCKETS_DIAG, or CAP_NET_RAW")
}

// listed searches the sockets that the kernel lists.
func (x *exam) listed(ctx context.Context, sockets []*netlink.XDPDiagInfoResp) []Finding {
	for _, s := range sockets {
		if s.XDPInfo == nil || s.XDPDiagMsg == nil || int(s.XDPInfo.Ifindex) != x.link.Attrs().Index {
			continue
		}
		if who := socketHolder(ctx, uint64(s.XDPDiagMsg.Ino)); !who.self() {
			return x.held(int(s.XDPInfo.QueueID), who)
		}
	}
	return ok("no AF_XDP socket has a queue of %s", x.name())
}

// bound finds the queues that another AF_XDP socket has: it binds a socket to each queue for a moment, in copy mode,
// which does not change the driver. The queue stays busy until the kernel has freed it: see [releaseLimit].
func (x *exam) bound(ctx context.Context) []Finding {
	for q := range x.queues() {
		busy := staysBusy(ctx, x.link.Attrs().Index, q)
		switch {
		case ctx.Err() != nil:
			return nil
		case busy:
			return x.held(q, holder{})
		}
	}
	return ok("no AF_XDP socket has a queue of %s", x.name())
}

// releaseLimit is how long a queue may stay busy after its socket was closed. The kernel frees it in about 25 ms.
const releaseLimit = 200 * time.Millisecond

// staysBusy reports whether a queue is busy for longer than releaseLimit, so that a socket must have it.
func staysBusy(ctx context.Context, ifindex, queue int) bool {
	ctx, cancel := context.WithTimeout(ctx, releaseLimit)
	defer cancel()
	for ctx.Err() == nil {
		if !errors.Is(bindQueue(ifindex, queue), unix.EBUSY) {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

func (x *exam) held(queue int, who holder) []Finding {
	return failure(fmt.Sprintf("an AF_XDP socket of %s has queue %d of %s", who, queue, x.name()),
		"A queue takes one socket.", fmt.Sprintf("stop that program%s, or choose another interface", who.hint()), who.stop())
}

// xdpSockets returns the number of AF_XDP sockets in this network namespace, from /proc/net/protocols; -1 if the file
// cannot be read.
func xdpSockets() int {
	text := readLine("/proc/thread-self/net/protocols")
	for line := range strings.Lines(text) {
		var name string
		var size, sockets int
		if _, err := fmt.Sscan(line, &name, &size, &sockets); err == nil && name == "XDP" {
			return sockets
		}
	}
	return -1
}
