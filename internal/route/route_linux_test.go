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

func (w *world) resolve(dst string) *Hop {
	w.Helper()
	h, err := w.table.Resolve(netip.MustParseAddr(dst))
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
		if _, err := w.table.Resolve(netip.MustParseAddr(dst)); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v, want ErrUnreachable", dst, err)
		}
	}
	if _, err := w.table.Resolve(netip.Addr{}); !errors.Is(err, ErrUnreachable) {
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

func TestMACChangeIsFollowed(t *testing.T) {
	w := newWorld(t)
	h4, h6 := w.resolve(lab.B.Addr4().String()), w.resolve(lab.B.Addr6().String())
	w.untilMAC(h4, lab.B.MAC())
	w.untilMAC(h6, lab.B.MAC())
	mac := net.HardwareAddr{2, 0x73, 9, 9, 9, 9}
	w.must(w.nl[lab.B].LinkSetHardwareAddr(w.veth[lab.B], mac))
	// The kernel of A accepts another MAC address only after it has solicited again and its lock time of 1 s is over.
	for _, dst := range []netip.Addr{lab.B.Addr4(), lab.B.Addr6()} {
		w.must(w.nl[lab.A].NeighDel(&netlink.Neigh{LinkIndex: w.table.index, IP: dst.AsSlice()}))
	}
	w.untilMAC(h4, mac)
	w.untilMAC(h6, mac)
}

func TestMTUChangeIsSeen(t *testing.T) {
	w := newWorld(t)
	h := w.resolve(lab.B.Addr4().String())
	w.must(w.lab.SetMTU(9000))
	w.until("MTU 9000", func() bool { return h.MTU() == 9000 && w.table.Interface().MTU == 9000 })
	w.must(w.lab.SetMTU(1280))
	w.until("MTU 1280", func() bool { return h.MTU() == 1280 })
}

func TestNeighbourAppearsLater(t *testing.T) {
	w := newWorld(t)
	h := w.resolve("10.73.0.77")
	w.until("the kernel gives up", func() bool {
		w.table.mu.Lock()
		defer w.table.mu.Unlock()
		return w.table.seen[netip.MustParseAddr("10.73.0.77")].state == netlink.NUD_FAILED
	})
	if mac, ok := h.MAC(); ok {
		t.Errorf("MAC of nobody = %x", mac)
	}
	addr, err := netlink.ParseAddr("10.73.0.77/24")
	w.must(err)
	w.must(w.nl[lab.B].AddrAdd(w.veth[lab.B], addr))
	w.untilMAC(h, lab.B.MAC())
}

// A neighbour that stops answering the kernel's requests keeps its MAC address, for its hops and for answers. When it
// answers again with another MAC address, that address is used.
func TestFailedNeighbourKeepsItsMAC(t *testing.T) {
	for _, dst := range []netip.Addr{lab.B.Addr4(), lab.B.Addr6()} {
		w := newWorld(t)
		h := w.resolve(dst.String())
		w.untilMAC(h, lab.B.MAC())
		w.must(w.nl[lab.B].AddrDel(w.veth[lab.B], addrOf(dst)))
		entry := &netlink.Neigh{LinkIndex: w.table.index, IP: dst.AsSlice(), State: netlink.NUD_FAILED}
		w.must(w.nl[lab.A].NeighSet(entry))
		w.until("the failure is seen", func() bool {
			w.table.mu.Lock()
			defer w.table.mu.Unlock()
			return w.table.seen[dst].state == netlink.NUD_FAILED
		})
		keeps := func(when string) {
			t.Helper()
			if mac, ok := h.MAC(); !ok || mac != [6]byte(lab.B.MAC()) {
				t.Errorf("%v: MAC %x, %v %s", dst, mac, ok, when)
			}
			if mac, ok := w.table.Answer(dst, [6]byte{2}); !ok || mac != [6]byte(lab.B.MAC()) {
				t.Errorf("%v: answers go to %x, %v %s", dst, mac, ok, when)
			}
		}
		keeps("after a failure")
		w.must(w.nl[lab.A].NeighDel(entry))
		w.must(w.table.readNeighbours())
		keeps("without an entry")
		mac := net.HardwareAddr{2, 0x73, 9, 9, 9, 9}
		w.must(w.nl[lab.B].LinkSetHardwareAddr(w.veth[lab.B], mac))
		w.must(w.nl[lab.B].AddrAdd(w.veth[lab.B], addrOf(dst)))
		w.untilMAC(h, mac)
		w.answers(dst, mac)
	}
}

// addrOf returns an address for AddrAdd, without duplicate address detection.
func addrOf(a netip.Addr) *netlink.Addr {
	bits := 24
	if a.Is6() {
		bits = 64
	}
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}, Flags: syscall.IFA_F_NODAD}
}

// The MAC address of an unresolved neighbour is forgotten with the last hop that uses it.
func TestFailedNeighbourIsForgottenWithItsHops(t *testing.T) {
	table := &Table{index: 1, poke: make(chan struct{}, 1), answering: newAnswering(),
		neighbours: make(map[netip.Addr]*neighbour), seen: make(map[netip.Addr]sighting)}
	dst := lab.B.Addr4()
	sight := func(state int, mac net.HardwareAddr) {
		table.sight(&netlink.Neigh{LinkIndex: 1, IP: dst.AsSlice(), State: state, HardwareAddr: mac}, false, time.Now())
	}
	h := &Hop{dst: dst}
	table.attach(h, dst)
	sight(netlink.NUD_REACHABLE, lab.B.MAC())
	sight(netlink.NUD_FAILED, nil)
	if e := table.macs.find(dst); e == nil || e.mac != [6]byte(lab.B.MAC()) || !e.stale {
		t.Errorf("entry %+v while a hop uses the neighbour", e)
	}
	table.macs.remove(dst) // another address took its place
	if !table.wanting(dst) || table.macs.find(dst) == nil {
		t.Error("the entry did not come back while a hop uses the neighbour")
	}
	table.detach(h)
	if e := table.macs.find(dst); e != nil {
		t.Errorf("entry %+v without a hop", e)
	}
}

func TestStaleNeighbourIsConfirmed(t *testing.T) {
	w := newWorld(t)
	h := w.resolve(lab.B.Addr4().String())
	w.untilMAC(h, lab.B.MAC())
	state := func() int {
		w.table.mu.Lock()
		defer w.table.mu.Unlock()
		return w.table.seen[lab.B.Addr4()].state
	}
	w.table.mu.Lock()
	delete(w.table.seen, lab.B.Addr4())
	w.table.mu.Unlock()
	w.must(w.nl[lab.A].NeighSet(&netlink.Neigh{
		LinkIndex: w.table.index, IP: lab.B.Addr4().AsSlice(),
		HardwareAddr: lab.B.MAC(), State: netlink.NUD_STALE,
	}))
	w.until("confirmed", func() bool { return state() == netlink.NUD_REACHABLE })
	w.untilMAC(h, lab.B.MAC())
}

func TestStaticNeighbourIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	mac := net.HardwareAddr{2, 1, 2, 3, 4, 5}
	w.must(w.nl[lab.A].NeighSet(&netlink.Neigh{
		LinkIndex: w.table.index, IP: net.IPv4(10, 73, 0, 50).To4(), HardwareAddr: mac, State: netlink.NUD_PERMANENT,
	}))
	w.until("entry seen", func() bool {
		w.table.mu.Lock()
		defer w.table.mu.Unlock()
		return len(w.table.seen) > 0
	})
	h := w.resolve("10.73.0.50")
	if got, ok := h.MAC(); !ok || got != [6]byte(mac) {
		t.Errorf("MAC = %x, %v, want %x at once", got, ok, mac)
	}
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	if at := h.via.kickAt; !at.IsZero() {
		t.Errorf("the kernel is going to be asked at %v", at)
	}
}

func TestReleaseAndClose(t *testing.T) {
	w := newWorld(t)
	dst := lab.B.Addr4()
	for range 2 {
		_, err := w.table.Resolve(dst)
		w.must(err)
	}
	h := w.table.hops[dst]
	w.table.Release(h)
	if len(w.table.hops) != 1 {
		t.Error("the hop ended while it was held")
	}
	w.table.Release(h)
	if len(w.table.hops) != 0 || len(w.table.neighbours) != 0 {
		t.Errorf("%d hops, %d neighbours left", len(w.table.hops), len(w.table.neighbours))
	}
	w.must(w.table.Close())
	if _, err := w.table.Resolve(dst); !errors.Is(err, net.ErrClosed) {
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
