package route

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// way is the result of a route lookup. The zero value means no route.
type way struct {
	via    netip.Addr // gateway, or the destination itself
	source netip.Addr
	mtu    int // 0 if the route has none
}

// lookup asks the kernel for the route through this interface that packets of a UDP socket take. It may wait for as long
// as any user of the host holds RTNL; requestTimeout does not end this wait.
func (t *Table) lookup(f flow) (way, error) {
	dst := f.dst.Addr()
	r, err := t.asker.routeTo(f, t.index)
	if err != nil {
		return way{}, t.lookupError(dst, err)
	}
	if r.hop().index != t.index || r.kind != syscall.RTN_UNICAST {
		return way{}, fmt.Errorf("route: resolve %v on %s: not a unicast route there: %w",
			dst, t.Interface().Name, ErrUnreachable)
	}
	w := way{via: r.viaTo(dst), source: r.source, mtu: r.mtu}
	if src := f.src.Addr(); src.IsValid() {
		w.source = src
	}
	return w, nil
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
