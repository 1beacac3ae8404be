package route

import (
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

// lookup asks the kernel for the route through this interface that packets of a socket with this source take. It may
// wait for as long as any user of the host holds RTNL; requestTimeout does not end this wait.
func (t *Table) lookup(e ends) (way, error) {
	dst := e.dst
	r, err := routeTo(t.handle, dst, netlink.RouteGetOptions{OifIndex: t.index, SrcAddr: e.src.AsSlice()})
	if err != nil {
		return way{}, t.lookupError(dst, err)
	}
	if r.LinkIndex != t.index || r.Type != syscall.RTN_UNICAST {
		return way{}, fmt.Errorf("route: resolve %v on %s: not a unicast route there: %w",
			dst, t.Interface().Name, ErrUnreachable)
	}
	w := wayOf(dst, &r)
	if e.src.IsValid() {
		w.source = e.src
	}
	return w, nil
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
	if isUnreachable(err) {
		return fmt.Errorf("route: resolve %v on %s: %w (%w)", dst, t.Interface().Name, ErrUnreachable, err)
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
