package route

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// Requests become due in the order of their times, whatever changes and removals came before.
func TestPlan(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var p plan
	now := time.Now()
	all := make([]neighbour, 100)
	planned := 0
	for i := range 1000 {
		n, at := &all[random.IntN(len(all))], time.Time{}
		if i%5 != 0 {
			at = now.Add(time.Duration(random.IntN(1000)))
		}
		p.set(n, at)
	}
	for i := range all {
		if !all[i].kickAt.IsZero() {
			planned++
		}
	}
	last := now
	for n := p.due(now.Add(time.Second)); n != nil; n = p.due(now.Add(time.Second)) {
		if n.kickAt.Before(last) {
			t.Errorf("%v comes after %v", n.kickAt, last)
		}
		last = n.kickAt
		p.set(n, time.Time{})
		planned--
	}
	if planned != 0 {
		t.Errorf("%d requests are left", planned)
	}
}

// A message about a neighbour wakes the keeper only if a request has become due earlier. Otherwise each advertisement of
// a host would cost time for every neighbour.
func TestNeighbourMessagesWakeKeeper(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.1")
	table := &Table{index: 1, answering: newAnswering(), seen: make(map[netip.Addr]sighting),
		neighbours: make(map[netip.Addr]*neighbour), poke: make(chan struct{}, 1), rerouting: rerouting{routesAt: time.Now().Add(recheck)}}
	table.attach(&Hop{}, addr)
	message := func(state int) (wakes bool) {
		table.kickDue(time.Now().Add(-time.Second)) // nothing is due, and no request is sent
		select {
		case <-table.poke:
		default:
		}
		table.sight(&netlink.Neigh{LinkIndex: 1, IP: addr.AsSlice(), State: state, HardwareAddr: make([]byte, 6)}, false, time.Now())
		return len(table.poke) > 0
	}
	message(netlink.NUD_REACHABLE)
	if message(netlink.NUD_REACHABLE) {
		t.Error("a confirmed neighbour wakes the keeper")
	}
	if !message(netlink.NUD_STALE) {
		t.Error("a neighbour that needs a request does not wake the keeper")
	}
}

// The kernel is seldom asked for neighbours that it has removed, and for neighbours that no longer answer: a host with
// many connections could make the kernel solicit, and fill its table, for each of them.
func TestKnownNeighboursAreSeldomAskedFor(t *testing.T) {
	table := &Table{}
	now := time.Now()
	next := func(n *neighbour, state int) time.Duration {
		table.follow(n, sighting{state: state}, now)
		return n.kickAt.Sub(now)
	}
	known, unknown := &neighbour{mac: 1}, &neighbour{}
	if d := next(known, 0); d != evicted {
		t.Errorf("a removed neighbour is asked for after %v", d)
	}
	if d := next(unknown, 0); d != 0 {
		t.Errorf("a new neighbour is asked for after %v", d)
	}
	for range 20 {
		next(known, netlink.NUD_FAILED)
		next(unknown, netlink.NUD_FAILED)
	}
	if d := next(known, netlink.NUD_FAILED); d != kickKnown {
		t.Errorf("a failed neighbour is asked for after %v", d)
	}
	if d := next(unknown, netlink.NUD_FAILED); d != kickLast {
		t.Errorf("a failed neighbour without a MAC address is asked for after %v", d)
	}
}
