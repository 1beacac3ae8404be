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
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// world is a lab with a netlink handle at each end, and the table of end A.
type world struct {
	*testing.T
	lab   *lab.Lab
	nl    [2]*netlink.Handle
	veth  [2]netlink.Link
	table *Table
}

// patience is how long a test waits for the kernel.
const patience = 20 * time.Second

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, lab: labtest.New(t, lab.Options{})}
	for _, s := range []lab.Side{lab.A, lab.B} {
		w.on(s, func() (err error) {
			if w.nl[s], err = netlink.NewHandle(); err != nil {
				return err
			}
			w.veth[s], err = w.nl[s].LinkByName(lab.Interface)
			return err
		})
		t.Cleanup(w.nl[s].Close)
	}
	w.on(lab.A, func() (err error) {
		w.table, err = Open(w.veth[lab.A].Attrs().Index)
		return err
	})
	t.Cleanup(func() {
		if err := w.table.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) on(s lab.Side, fn func() error) {
	w.Helper()
	if err := w.lab.Do(s, fn); err != nil {
		w.Fatal(err)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// anyPort returns an address without a port, for routes that do not depend on it.
func anyPort(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 0) }

func (w *world) resolve(dst string) *Hop {
	w.Helper()
	h, err := w.table.Resolve(netip.AddrPort{}, anyPort(netip.MustParseAddr(dst)), patience)
	w.must(err)
	w.Cleanup(func() { w.table.Release(h) })
	return h
}

// until polls until ok returns true. It polls, because no event reports a change of a Hop.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			w.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (w *world) untilMAC(h *Hop, want net.HardwareAddr) {
	w.Helper()
	w.until("MAC "+want.String(), func() bool {
		mac, ok := h.MAC()
		return ok && mac == [6]byte(want)
	})
}

func TestOnLink(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ dst, src netip.Addr }{
		{lab.B.Addr4(), lab.A.Addr4()},
		{lab.B.Addr6(), lab.A.Addr6()},
	} {
		start := time.Now()
		h := w.resolve(tt.dst.String())
		w.untilMAC(h, lab.B.MAC())
		t.Logf("%v resolved in %v", tt.dst, time.Since(start))
		if h.Source() != tt.src || h.MTU() != 1500 {
			t.Errorf("%v: source %v MTU %d, want %v and 1500", tt.dst, h.Source(), h.MTU(), tt.src)
		}
		if again := w.resolve(tt.dst.String()); again != h {
			t.Errorf("%v: two hops for one destination", tt.dst)
		}
	}
}

func TestInterface(t *testing.T) {
	w := newWorld(t)
	got := w.table.Interface()
	if got.MAC != [6]byte(lab.A.MAC()) || got.MTU != 1500 || !got.Up || got.Name != lab.Interface {
		t.Errorf("Interface = %+v", got)
	}
	has := func(want netip.Prefix) func() bool {
		return func() bool {
			for _, p := range w.table.Interface().Addrs {
				if p == want {
					return true
				}
			}
			return false
		}
	}
	if !has(netip.PrefixFrom(lab.A.Addr4(), 24))() {
		t.Errorf("addresses = %v", got.Addrs)
	}
	added, err := netlink.ParseAddr("10.99.0.1/24")
	w.must(err)
	w.must(w.nl[lab.A].AddrAdd(w.veth[lab.A], added))
	w.until("added address", has(netip.MustParsePrefix("10.99.0.1/24")))
	w.must(w.lab.SetUp(lab.A, false))
	w.until("down", func() bool { return !w.table.Interface().Up })
}

func TestUnreachable(t *testing.T) {
	w := newWorld(t)
	for _, dst := range []string{
		"192.0.2.1",            // no route
		"2001:db8::1",          // no route, in IPv6
		lab.A.Addr4().String(), // our own address
		"127.0.0.1", "::1",     // the route leads through lo
		"0.0.0.0", "::", // unspecified
		"10.73.0.255", "224.0.0.1", // broadcast and multicast
	} {
		if _, err := w.table.Resolve(netip.AddrPort{}, anyPort(netip.MustParseAddr(dst)), patience); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v, want ErrUnreachable", dst, err)
		}
	}
	if _, err := w.table.Resolve(netip.AddrPort{}, anyPort(netip.Addr{}), patience); !errors.Is(err, ErrUnreachable) {
		t.Errorf("zero address: %v, want ErrUnreachable", err)
	}
}

func TestGateway(t *testing.T) {
	w := newWorld(t)
	_, far, err := net.ParseCIDR("192.0.2.0/24")
	w.must(err)
	r := &netlink.Route{LinkIndex: w.veth[lab.A].Attrs().Index, Dst: far, Gw: lab.B.Addr4().AsSlice(), MTU: 1400}
	w.must(w.nl[lab.A].RouteAdd(r))
	one, two := w.resolve("192.0.2.1"), w.resolve("192.0.2.2")
	w.untilMAC(one, lab.B.MAC())
	w.untilMAC(two, lab.B.MAC())
	if one.MTU() != 1400 || one.Source() != lab.A.Addr4() {
		t.Errorf("MTU %d source %v, want 1400 and %v", one.MTU(), one.Source(), lab.A.Addr4())
	}
	w.table.mu.Lock()
	if n := len(w.table.neighbours); n != 1 {
		t.Errorf("one gateway, %d neighbours", n)
	}
	w.table.mu.Unlock()

	w.must(w.nl[lab.A].RouteDel(r))
	w.until("route gone", func() bool { _, ok := one.MAC(); return !ok })
	r.MTU = 1300
	w.must(w.nl[lab.A].RouteAdd(r))
	w.untilMAC(one, lab.B.MAC())
	w.until("new MTU of the route", func() bool { return one.MTU() == 1300 })
}

func TestMTUChangeIsSeen(t *testing.T) {
	w := newWorld(t)
	h := w.resolve(lab.B.Addr4().String())
	w.must(w.lab.SetMTU(9000))
	w.until("MTU 9000", func() bool { return h.MTU() == 9000 && w.table.Interface().MTU == 9000 })
	w.must(w.lab.SetMTU(1280))
	w.until("MTU 1280", func() bool { return h.MTU() == 1280 })
}

// addrOf returns an address for AddrAdd, without duplicate address detection.
func addrOf(a netip.Addr) *netlink.Addr {
	bits := 24
	if a.Is6() {
		bits = 64
	}
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}, Flags: syscall.IFA_F_NODAD}
}

func TestReleaseAndClose(t *testing.T) {
	w := newWorld(t)
	dst := lab.B.Addr4()
	for range 2 {
		_, err := w.table.Resolve(netip.AddrPort{}, anyPort(dst), patience)
		w.must(err)
	}
	h := w.table.hops[flow{dst: anyPort(dst)}]
	w.table.Release(h)
	if len(w.table.hops) != 1 {
		t.Error("the hop ended while it was held")
	}
	w.table.Release(h)
	if len(w.table.hops) != 0 || len(w.table.neighbours) != 0 {
		t.Errorf("%d hops, %d neighbours left", len(w.table.hops), len(w.table.neighbours))
	}
	w.must(w.table.Close())
	if _, err := w.table.Resolve(netip.AddrPort{}, anyPort(dst), patience); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Resolve after Close: %v", err)
	}
}

func TestLostMessagesAreMadeUpFor(t *testing.T) {
	w := newWorld(t)
	h := w.resolve(lab.B.Addr4().String())
	w.untilMAC(h, lab.B.MAC())
	w.table.mu.Lock()
	clear(w.table.seen)
	w.table.mu.Unlock()
	w.table.resync()
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	if w.table.seen[lab.B.Addr4()].mac != packMAC(lab.B.MAC()) {
		t.Error("the neighbour was not read again")
	}
}

func TestOpenNamesTheInterface(t *testing.T) {
	if _, err := Open(1 << 30); err == nil {
		t.Error("Open of no interface worked")
	} else {
		t.Log(err)
	}
}

func TestHopIsReadWithoutAllocation(t *testing.T) {
	h := &Hop{}
	h.mac.Store(packMAC([]byte{1, 2, 3, 4, 5, 6}))
	if mac, ok := h.MAC(); !ok || mac != [6]byte{1, 2, 3, 4, 5, 6} {
		t.Errorf("MAC = %x, %v", mac, ok)
	}
	if n := testing.AllocsPerRun(100, func() { h.MAC(); h.MTU() }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkHopMAC(b *testing.B) {
	h := &Hop{}
	h.mac.Store(packMAC([]byte{1, 2, 3, 4, 5, 6}))
	for b.Loop() {
		h.MAC()
	}
}
