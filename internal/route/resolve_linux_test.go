package route

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
)

// silence makes the kernel not answer lookups of routes until the returned function is called. It is like a kernel whose
// lock of network settings (RTNL) is held.
func (w *world) silence() (end func()) {
	answer := make(chan struct{})
	t := w.table
	t.mu.Lock()
	defer t.mu.Unlock()
	query := t.query
	t.query = func(to flow) (way, error) {
		<-answer
		return query(to)
	}
	return func() { close(answer) }
}

// While the kernel does not answer, Known returns the route of the table of prefixes, with the known neighbour. Resolve
// ends after its limit. When the kernel answers, the hop has its route.
func TestKnownDoesNotWait(t *testing.T) {
	w := newWorld(t)
	behind := netip.MustParseAddr("192.0.2.1")
	dst := &net.IPNet{IP: behind.AsSlice(), Mask: net.CIDRMask(32, 32)}
	w.must(w.nl[lab.A].RouteAdd(&netlink.Route{LinkIndex: w.table.index, Dst: dst, Gw: lab.B.Addr4().AsSlice(), MTU: 1400}))
	w.until("the route", func() bool { _, ok := w.table.fib.Load().way(flow{dst: anyPort(behind)}); return ok })
	w.table.confirm(lab.B.Addr4(), [6]byte(lab.B.MAC())) // the gateway has answered a probe
	end := w.silence()
	h, err := w.table.Known(netip.AddrPort{}, anyPort(behind))
	w.must(err)
	defer w.table.Release(h)
	if mac, ok := h.MAC(); !ok || mac != [6]byte(lab.B.MAC()) || h.MTU() != 1400 || h.Source().IsValid() {
		t.Errorf("known route: MAC %x %v, MTU %d, source %v", mac, ok, h.MTU(), h.Source())
	}
	if again, err := w.table.Known(netip.AddrPort{}, anyPort(behind)); err != nil || again != h {
		t.Errorf("a second call returns another hop, %v", err)
	}
	w.table.Release(h)
	for _, addr := range []netip.Addr{behind, lab.B.Addr4()} {
		if _, err := w.table.Resolve(netip.AddrPort{}, anyPort(addr), time.Millisecond); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("Resolve of %v: %v", addr, err)
		}
	}
	for _, addr := range []string{"203.0.113.1", "0.0.0.0"} {
		if _, err := w.table.Known(netip.AddrPort{}, anyPort(netip.MustParseAddr(addr))); !errors.Is(err, ErrUnreachable) {
			t.Errorf("Known of %s: %v", addr, err)
		}
	}
	end()
	w.until("the kernel's route", func() bool { return h.Source() == lab.A.Addr4() })
	if got := w.resolve(behind.String()); got != h {
		t.Error("Resolve returns another hop")
	}
}

// TestRoutesThatRefuse: Known refuses an address at once if the longest prefix has a route that refuses packets, although
// a shorter prefix has a gateway.
func TestRoutesThatRefuse(t *testing.T) {
	w := newWorld(t)
	for _, dst := range []netip.Addr{lab.B.Addr4(), lab.B.Addr6()} {
		for _, kind := range []int{syscall.RTN_UNREACHABLE, syscall.RTN_PROHIBIT, syscall.RTN_BLACKHOLE} {
			host := &net.IPNet{IP: dst.AsSlice(), Mask: net.CIDRMask(dst.BitLen(), dst.BitLen())}
			r := netlink.Route{Type: kind, Dst: host, Priority: 1}
			w.must(w.nl[lab.A].RouteAdd(&r))
			w.until("the refusal", func() bool { return errors.Is(w.known(dst), ErrUnreachable) })
			w.must(w.nl[lab.A].RouteDel(&r))
			w.until("the route to the subnet", func() bool { return w.known(dst) == nil })
		}
	}
}

// known returns the error of Known.
func (w *world) known(dst netip.Addr) error {
	h, err := w.table.Known(netip.AddrPort{}, anyPort(dst))
	if err == nil {
		w.table.Release(h)
	}
	return err
}

// A policy rule may refuse packets for which the table of prefixes has a route. Known then returns a hop that leads
// nowhere after the lookup.
func TestKnownIsCorrected(t *testing.T) {
	w := newWorld(t)
	const table = 100
	dst := lab.B.Addr4()
	host := &net.IPNet{IP: dst.AsSlice(), Mask: net.CIDRMask(32, 32)}
	w.must(w.nl[lab.A].RouteAdd(&netlink.Route{Type: syscall.RTN_BLACKHOLE, Table: table, Dst: host}))
	rule := netlink.NewRule()
	rule.Dst, rule.Table, rule.Family = host, table, netlink.FAMILY_V4
	w.must(w.nl[lab.A].RuleAdd(rule))
	w.table.confirm(dst, [6]byte(lab.B.MAC()))
	h, err := w.table.Known(netip.AddrPort{}, anyPort(dst))
	w.must(err)
	w.until("no route", func() bool { _, ok := h.MAC(); return !ok })
	w.table.Release(h)
	if len(w.table.hops)+len(w.table.unchecked)+len(w.table.wanted) != 0 {
		t.Error("a released hop is left")
	}
}

// Close returns although the kernel does not answer a lookup, and the lookup ends later.
func TestCloseWhileKernelIsSilent(t *testing.T) {
	w := newWorld(t)
	end := w.silence()
	failed := make(chan error)
	go func() {
		_, err := w.table.Resolve(netip.AddrPort{}, anyPort(lab.B.Addr4()), patience)
		failed <- err
	}()
	w.until("the lookup", func() bool {
		w.table.mu.Lock()
		defer w.table.mu.Unlock()
		return w.table.asking
	})
	w.must(w.table.Close())
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Resolve: %v", err)
	}
	end()
	w.table.all.Wait()
}
