package route

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// requestTimeout bounds the time between a request and the kernel's response. It does not bound the request itself, in
// which the kernel waits for its lock of network settings (RTNL).
const requestTimeout = 5 * time.Second

// way is the result of a route lookup. The zero value means no route.
type way struct {
	via    netip.Addr // gateway, or the destination itself
	source netip.Addr
	mtu    int // 0 if the route has none
}

// lookup asks the kernel for the route to an address through this interface. It may wait for as long as any user of the
// host holds RTNL; requestTimeout does not end this wait.
func (t *Table) lookup(dst netip.Addr) (way, error) {
	r, err := routeTo(t.handle, dst, netlink.RouteGetOptions{OifIndex: t.index})
	if err != nil {
		return way{}, t.lookupError(dst, err)
	}
	if r.LinkIndex != t.index || r.Type != syscall.RTN_UNICAST {
		return way{}, fmt.Errorf("route: resolve %v on %s: not a unicast route there: %w",
			dst, t.Interface().Name, ErrUnreachable)
	}
	return wayOf(dst, &r), nil
}

func wayOf(dst netip.Addr, r *netlink.Route) way {
	w := way{via: dst, source: address(r.Src), mtu: r.MTU}
	if gw := gatewayAddr(r.Gw, r.Via); gw.IsValid() {
		w.via = gw
	}
	return w
}

// lookupError distinguishes "no route" from a failed request.
func (t *Table) lookupError(dst netip.Addr, err error) error {
	for _, none := range []syscall.Errno{
		syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.EACCES, syscall.EINVAL,
		syscall.ENODEV, syscall.ENETDOWN, syscall.ESRCH, syscall.EAFNOSUPPORT, syscall.EPERM,
	} {
		if errors.Is(err, none) {
			return fmt.Errorf("route: resolve %v on %s: %w (%w)", dst, t.Interface().Name, ErrUnreachable, err)
		}
	}
	return fmt.Errorf("route: resolve %v on %s: %w", dst, t.Interface().Name, err)
}

// direct updates a hop with the result of a lookup; a zero way leads nowhere. The caller holds mu.
func (t *Table) direct(h *Hop, w way) {
	h.source.Store(&w.source)
	h.mtu.Store(int64(limitMTU(t.iface.Load().MTU, w.mtu)))
	if h.via != nil && h.via.addr == w.via {
		return
	}
	t.detach(h)
	if w.via.IsValid() {
		t.attach(h, w.via)
	}
}

func address(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
