package route

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
)

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
			if mac, ok := w.table.Answer(netip.AddrPort{}, anyPort(dst), [6]byte{2}); !ok || mac != [6]byte(lab.B.MAC()) {
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
		w.ask(h)
		w.untilMAC(h, mac)
		w.answers(dst, mac)
	}
}

// The MAC address of an unresolved neighbour is forgotten with the last hop that uses it.
func TestFailedNeighbourIsForgottenWithItsHops(t *testing.T) {
	table := &Table{index: 1, poke: make(chan struct{}, 1), answering: newAnswering(),
		neighbours: make(map[netip.Addr]*neighbour), seen: make(map[netip.Addr]sighting)}
	dst := lab.B.Addr4()
	sight := func(state int, mac net.HardwareAddr) {
		table.sight(&netlink.Neigh{LinkIndex: 1, IP: dst.AsSlice(), State: state, HardwareAddr: mac}, false, time.Now())
	}
	h := &Hop{flow: flow{dst: anyPort(dst)}}
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
	w.until("the entries are gone", func() bool {
		w.table.mu.Lock()
		defer w.table.mu.Unlock()
		return !h4.via.listed && !h6.via.listed
	})
	w.ask(h4)
	w.ask(h6)
	w.untilMAC(h4, mac)
	w.untilMAC(h6, mac)
}

// ask makes the next request for a neighbour due.
func (w *world) ask(h *Hop) {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	w.table.requests.set(h.via, time.Now())
	w.table.pokeKeeper()
}
