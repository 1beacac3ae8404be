package route

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
)

// Found is a route that Find returns.
type Found struct {
	Index int        // of the interface through which packets leave
	Via   netip.Addr // gateway, which may be of another family than the destination; or the destination itself
	Local bool       // packets do not leave the host
}

// Find returns the kernel's route for packets from src to dst. With an index, packets leave through that interface, as
// those of a Table do; without one (0), the kernel chooses it, as for a socket that is bound to src. The error matches
// ErrUnreachable if there is no route.
//
// System calls: socket, bind, sendto, recvfrom (netlink).
func Find(index int, src, dst netip.Addr) (Found, error) {
	h, err := netlink.NewHandle(syscall.NETLINK_ROUTE)
	if err != nil {
		return Found{}, fmt.Errorf("route: open netlink socket: %w", err)
	}
	defer h.Close()
	e := endsOf(src, dst)
	if !e.dst.IsValid() || e.dst.IsUnspecified() {
		return Found{}, ErrUnreachable
	}
	o := netlink.RouteGetOptions{SrcAddr: e.src.AsSlice()}
	if r, err := routeGet(h, e.dst, &netlink.RouteGetOptions{}); err == nil && r.Type == syscall.RTN_LOCAL {
		return Found{Index: r.LinkIndex, Via: e.dst, Local: true}, nil
	}
	o.OifIndex = index
	r, err := routeTo(h, e.dst, o)
	switch {
	case err != nil && isUnreachable(err):
		return Found{}, fmt.Errorf("%w (%w)", ErrUnreachable, err)
	case err != nil:
		return Found{}, err
	case r.Type != syscall.RTN_UNICAST || index != 0 && r.LinkIndex != index:
		return Found{}, ErrUnreachable
	}
	return Found{Index: r.LinkIndex, Via: wayOf(e.dst, &r).via}, nil
}

// isUnreachable reports whether an error of a lookup means that there is no route.
func isUnreachable(err error) bool {
	for _, none := range []syscall.Errno{
		syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.EACCES, syscall.EINVAL,
		syscall.ENODEV, syscall.ENETDOWN, syscall.ESRCH, syscall.EAFNOSUPPORT, syscall.EPERM,
	} {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
}
