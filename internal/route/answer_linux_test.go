package route

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
)

// answers waits until Answer returns this MAC address for the destination.
func (w *world) answers(dst netip.Addr, want net.HardwareAddr) {
	w.Helper()
	w.until(fmt.Sprint(dst, " at ", want), func() bool {
		mac, ok := w.table.Answer(netip.AddrPort{}, anyPort(dst), [6]byte{2})
		return ok && mac == [6]byte(want)
	})
}

// Answer returns the MAC address of the neighbour, resolves it if needed, and follows its changes.
func TestAnswerGoesToTheNeighbour(t *testing.T) {
	for _, dst := range []netip.Addr{lab.B.Addr4(), lab.B.Addr6()} {
		w := newWorld(t)
		w.answers(dst, lab.B.MAC())
		mac := net.HardwareAddr{2, 0x73, 9, 9, 9, 9}
		w.must(w.nl[lab.A].NeighSet(&netlink.Neigh{LinkIndex: w.table.index, IP: dst.AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT}))
		w.answers(dst, mac)
		w.must(w.nl[lab.A].NeighDel(&netlink.Neigh{LinkIndex: w.table.index, IP: dst.AsSlice()}))
		w.answers(dst, lab.B.MAC())
	}
}

// An answer to another subnet goes to the gateway of the longest prefix. Without a route there is no answer.
func TestAnswerGoesToTheGateway(t *testing.T) {
	w := newWorld(t)
	far := netip.MustParseAddr("192.0.2.7")
	if _, ok := w.table.Answer(netip.AddrPort{}, anyPort(far), [6]byte{2}); ok {
		t.Error("an answer without a route")
	}
	other := net.HardwareAddr{2, 0x73, 7, 7, 7, 7}
	near := netip.MustParseAddr("10.73.0.9")
	w.must(w.nl[lab.A].NeighSet(&netlink.Neigh{LinkIndex: w.table.index, IP: near.AsSlice(), HardwareAddr: other, State: netlink.NUD_PERMANENT}))
	route := func(prefix string, gw netip.Addr) *netlink.Route {
		_, dst, err := net.ParseCIDR(prefix)
		w.must(err)
		return &netlink.Route{LinkIndex: w.table.index, Dst: dst, Gw: gw.AsSlice()}
	}
	w.must(w.nl[lab.A].RouteAdd(route("0.0.0.0/0", lab.B.Addr4())))
	w.answers(far, lab.B.MAC())
	special := route("192.0.2.0/24", near)
	w.must(w.nl[lab.A].RouteAdd(special))
	w.answers(far, other)
	w.answers(netip.MustParseAddr("198.51.100.1"), lab.B.MAC())
	w.must(w.nl[lab.A].RouteDel(special))
	w.answers(far, lab.B.MAC())
}

// One host claims many IP addresses. The table lets the kernel resolve them slowly, and another host that claims one
// address does not have to wait.
func TestInventedNeighboursAreResolvedSlowly(t *testing.T) {
	w := newWorld(t)
	invented := lab.B.Addr6().As16()
	start := time.Now()
	flood := func() {
		for range 100 {
			for i := 15; ; i-- { // the next address
				if invented[i]++; invented[i] != 0 {
					break
				}
			}
			w.table.Answer(netip.AddrPort{}, anyPort(netip.AddrFrom16(invented)), [6]byte{2, 0x66})
		}
	}
	for time.Since(start) < 1500*time.Millisecond {
		flood()
	}
	asked := time.Now()
	w.until("the newcomer is known", func() bool {
		flood()
		_, ok := w.table.Answer(netip.AddrPort{}, anyPort(lab.B.Addr4()), [6]byte(lab.B.MAC()))
		return ok
	})
	if took := time.Since(asked); took > time.Second {
		t.Errorf("the newcomer was known after %v", took)
	}
	list, err := w.nl[lab.A].NeighList(w.table.index, 0)
	w.must(err)
	list = slices.DeleteFunc(list, func(n netlink.Neigh) bool { return n.IP.IsMulticast() }) // each solicitation adds a multicast entry
	if most := resolveBurst + int(time.Since(start)/resolvePause) + 8; len(list) > most {
		t.Errorf("%d entries in the neighbour table after %v, want %d at most", len(list), time.Since(start), most)
	}
	t.Logf("%d entries after %v", len(list), time.Since(start))
}

// A new host is resolved within a second during a flood of 5000 claims per second. Each claim of the flood is for an
// unused IP address and comes from another MAC address. The new host increases the pause between its attempts, like the
// retransmissions of a connection request.
func TestNewcomerBesideInventedEthernetAddresses(t *testing.T) {
	for _, tc := range []struct {
		newcomer netip.Addr
		invented func(i int) netip.Addr
	}{
		{lab.B.Addr4(), func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 73, 0, byte(3 + i%250)}) }},
		{lab.B.Addr6(), func(i int) netip.Addr {
			a := lab.B.Addr6().As16()
			a[12], a[13], a[14], a[15] = 1, byte(i>>16), byte(i>>8), byte(i)
			return netip.AddrFrom16(a)
		}},
	} {
		t.Run(tc.newcomer.String(), func(t *testing.T) {
			w := newWorld(t)
			n := 0
			start := time.Now()
			flood := func() { // sends the claims that are due by now
				for ; n < int(time.Since(start).Seconds()*5000); n++ {
					w.table.Answer(netip.AddrPort{}, anyPort(tc.invented(n)), [6]byte{2, 0x66, byte(n), byte(n >> 8), byte(n >> 16)})
				}
				time.Sleep(time.Millisecond)
			}
			for time.Since(start) < 2*time.Second {
				flood()
			}
			asked, next, pause := time.Now(), time.Now(), 5*time.Millisecond
			for known := false; !known; flood() {
				if time.Now().After(next) {
					_, known = w.table.Answer(netip.AddrPort{}, anyPort(tc.newcomer), [6]byte(lab.B.MAC()))
					next, pause = next.Add(pause), min(2*pause, 100*time.Millisecond)
				}
				if time.Since(asked) > 10*time.Second {
					t.Fatal("the newcomer is not known after 10 s")
				}
			}
			took := time.Since(asked)
			list, err := w.nl[lab.A].NeighList(w.table.index, 0)
			w.must(err)
			list = slices.DeleteFunc(list, func(n netlink.Neigh) bool { return n.IP.IsMulticast() })
			t.Logf("known after %v beside %d claims; %d entries in the neighbour table", took, n, len(list))
			if took > time.Second {
				t.Errorf("the newcomer was known after %v", took)
			}
			if most := resolveBurst + int(time.Since(start)/resolvePause) + 8; len(list) > most {
				t.Errorf("%d entries in the neighbour table, want %d at most", len(list), most)
			}
		})
	}
}

// A new host that confirms its address becomes known, although another host with many addresses, which it confirms too,
// claims more resolutions than there are tokens for. The kernel need not resolve the new host.
func TestNewcomerBesideConfirmedNeighbours(t *testing.T) {
	for _, newcomer := range []netip.Addr{lab.B.Addr4(), lab.B.Addr6()} {
		w := newWorld(t)
		n := 0
		flood := func() {
			for range 100 * askCells {
				n++
				w.table.confirm(netip.AddrFrom4([4]byte{10, 73, byte(1 + n>>8), byte(n)}), [6]byte{2, 0x66, byte(n), byte(n >> 8), byte(n >> 16)})
			}
		}
		w.until("the tokens are used up", func() bool {
			flood()
			w.table.mu.Lock()
			defer w.table.mu.Unlock()
			return len(w.table.seen) >= resolveBurst
		})
		w.until("the newcomer is known", func() bool {
			flood()
			mac, ok := w.table.Answer(netip.AddrPort{}, anyPort(newcomer), [6]byte(lab.B.MAC()))
			return ok && mac == [6]byte(lab.B.MAC())
		})
	}
}

// The answer to a probe is used for a short time, and not if the kernel knows better.
func TestConfirmedAddressExpires(t *testing.T) {
	table := &Table{index: 1, answering: newAnswering(), seen: make(map[netip.Addr]sighting), neighbours: make(map[netip.Addr]*neighbour)}
	dst, mac, other := lab.B.Addr4(), [6]byte(lab.B.MAC()), [6]byte{2, 9}
	table.confirm(dst, mac)
	e := table.macs.find(dst)
	if e == nil || e.mac != mac || e.expired() {
		t.Fatalf("entry %+v after an answer", e)
	}
	e.at = time.Now().Add(-confirmedTime)
	if !e.expired() {
		t.Error("the entry does not expire")
	}
	table.sight(&netlink.Neigh{LinkIndex: 1, IP: dst.AsSlice(), State: netlink.NUD_REACHABLE, HardwareAddr: mac[:]}, false, time.Now())
	table.confirm(dst, other)
	if e := table.macs.find(dst); e == nil || e.mac != mac || e.expired() {
		t.Errorf("entry %+v of a neighbour that the kernel knows", e)
	}
}

// A claim whose source is a group address or zero is not probed: the probe would reach every host of the segment. The
// kernel is not asked either.
func TestClaimsOfGroupsAreIgnored(t *testing.T) {
	table := &Table{answering: newAnswering()}
	p := newPrefixes()
	p.add(netip.MustParsePrefix("10.73.0.0/24"), gateway{})
	p.add(netip.MustParsePrefix("fd73::/64"), gateway{})
	table.fib.Store(&fib{rules4: []rule{{table: p}}, rules6: []rule{{table: p}}})
	for _, dst := range []netip.Addr{netip.MustParseAddr("10.73.0.99"), netip.MustParseAddr("fd73::99")} {
		for mac, want := range map[[6]byte]bool{
			{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}: false,
			{1, 0, 0x5e, 0, 0, 1}:                false,
			{0x33, 0x33, 0, 0, 0, 1}:             false,
			{}:                                   false,
			{0, 0, 0, 0, 0, 1}:                   true,
			{2, 0x73}:                            true,
		} {
			if _, ok := table.Answer(netip.AddrPort{}, anyPort(dst), mac); ok {
				t.Fatalf("%v is known", dst)
			}
			if at, from, ok := table.claims.take(); ok != want || ok && (at != dst || from != mac) {
				t.Errorf("claim of %v at %x: %v at %x, %t; want %t", dst, mac, at, from, ok, want)
			}
		}
	}
	if addr, _, ok := table.confirmed.take(); ok {
		t.Errorf("the kernel is to resolve %v", addr)
	}
}

// Answer allocates no memory, whether it knows the neighbour or not.
func TestAnswerDoesNotAllocate(t *testing.T) {
	w := newWorld(t)
	w.answers(lab.B.Addr4(), lab.B.MAC())
	unknown := netip.MustParseAddr("10.73.0.99")
	n := testing.AllocsPerRun(1000, func() {
		w.table.Answer(netip.AddrPort{}, anyPort(lab.B.Addr4()), [6]byte{2})
		w.table.Answer(netip.AddrPort{}, anyPort(unknown), [6]byte{2})
	})
	if n > 0.1 { // not 0, because the table's goroutines may allocate meanwhile
		t.Errorf("%v allocations, want 0", n)
	}
}

// All claims of one sender share a cell; take serves the cells of the senders round robin.
func TestClaimsTakeTurns(t *testing.T) {
	a := newAsks()
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	for round := range 100 {
		for i := range 1000 {
			a.put(addr(i), [6]byte{2, 0x66})
		}
		honest := netip.AddrFrom4([4]byte{192, 0, 2, byte(round)})
		a.put(honest, [6]byte{2, 0x73})
		var got []netip.Addr
		for at, _, ok := a.take(); ok; at, _, ok = a.take() {
			got = append(got, at)
		}
		if len(got) == 2 && slices.Contains(got, honest) {
			return
		}
		if len(got) > 2 {
			t.Fatalf("two senders have %d claims", len(got))
		}
		a.epoch.Add(1) // the two senders shared a cell in this epoch
	}
	t.Error("the claims never had cells of their own")
}

// macTable keeps the newest entry of an address, and its size is limited.
func TestMACTable(t *testing.T) {
	m := newMACTable()
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	const many = 4 * macSets * macWays
	for i := range many {
		m.put(&macEntry{addr: addr(i)})
		m.put(&macEntry{addr: addr(i), mac: [6]byte{1, byte(i)}})
		if e := m.find(addr(i)); e == nil || e.mac != [6]byte{1, byte(i)} {
			t.Fatalf("entry %d: %+v", i, e)
		}
	}
	m.remove(addr(many - 1))
	if m.find(addr(many-1)) != nil {
		t.Error("an entry that was removed is there")
	}
	kept := 0
	for i := range many {
		if m.find(addr(i)) != nil {
			kept++
		}
	}
	if kept < macSets*macWays/2 {
		t.Errorf("%d entries of %d places are in use", kept, macSets*macWays)
	}
	m.retain(func(netip.Addr) bool { return false })
	for i := range many {
		if m.find(addr(i)) != nil {
			t.Fatalf("entry %d is there", i)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	t := &Table{answering: newAnswering()}
	p := newPrefixes()
	for _, s := range []string{"0.0.0.0/0", "10.0.0.0/24", "172.16.0.0/12"} {
		p.add(netip.MustParsePrefix(s), gateway{})
	}
	t.fib.Store(&fib{rules4: []rule{{table: p}}, rules6: []rule{{table: p}}})
	known, unknown := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")
	t.macs.put(&macEntry{addr: known})
	for name, dst := range map[string]netip.Addr{"known": known, "unknown": unknown} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t.Answer(netip.AddrPort{}, anyPort(dst), [6]byte{2})
			}
		})
	}
}
