package route

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// Found is a route that Find returns.
type Found struct {
	Index int        // of the interface through which packets leave
	Via   netip.Addr // gateway, which may be of another family than the destination; or the destination itself
	Local bool       // packets do not leave the host
}

// Find returns the kernel's route for UDP packets from src to dst. With an index, packets leave through that interface,
// as those of a Table do; without one (0), the kernel chooses it, as for a socket that is bound to src. The error matches
// ErrUnreachable if there is no route.
//
// System calls: socket, bind, sendto, recvfrom (netlink).
func Find(index int, src, dst netip.AddrPort) (Found, error) {
	a, err := openAsker()
	if err != nil {
		return Found{}, err
	}
	defer a.close()
	f := flowOf(src, dst)
	to := f.dst.Addr()
	if !to.IsValid() || to.IsUnspecified() {
		return Found{}, ErrUnreachable
	}
	anywhere := flow{netip.AddrPortFrom(netip.Addr{}, f.src.Port()), f.dst}
	if r, err := a.get(anywhere, 0, 0); err == nil && r.kind == syscall.RTN_LOCAL {
		return Found{Index: r.hop().index, Via: to, Local: true}, nil
	}
	r, err := a.routeTo(f, index)
	switch {
	case err != nil && isUnreachable(err):
		return Found{}, fmt.Errorf("%w (%w)", ErrUnreachable, err)
	case err != nil:
		return Found{}, err
	case r.kind != syscall.RTN_UNICAST || index != 0 && r.hop().index != index:
		return Found{}, ErrUnreachable
	}
	return Found{Index: r.hop().index, Via: r.viaTo(to)}, nil
}

// Accepts reports whether the kernel accepts UDP packets from src to dst, an address of this host, that arrive through an
// interface. It does not if its reverse path filter drops them (rp_filter; RFC 3704): packets to src leave by another
// interface.
//
// System calls: socket, bind, sendto, recvfrom (netlink).
func Accepts(index int, src, dst netip.AddrPort) (bool, error) {
	a, err := openAsker()
	if err != nil {
		return false, err
	}
	defer a.close()
	r, err := a.ask(flowOf(src, dst), syscall.RTA_IIF, index, 0)
	if isUnreachable(err) || errors.Is(err, syscall.EXDEV) {
		return false, nil
	}
	return err == nil && r.kind == syscall.RTN_LOCAL, err
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
