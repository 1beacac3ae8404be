package route

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// openReach opens a Reach without privilege on one side of a lab.
func (w *world) openReach(s lab.Side) (r *Reach) {
	w.Helper()
	w.on(s, func() (err error) {
		labtest.WithCaps(w, nil, func() { r, err = OpenReach(netip.AddrPort{}) })
		return err
	})
	w.Cleanup(r.Close)
	return r
}

// A neighbour is Known while the kernel has resolved it. Version changes when it no longer is.
func TestReachFollowsTheNeighbour(t *testing.T) {
	for _, addr := range []func(lab.Side) netip.Addr{lab.Side.Addr4, lab.Side.Addr6} {
		w := newWorld(t)
		r := w.openReach(lab.A)
		peer := addr(lab.B)
		if r.Known(anyPort(peer)) {
			t.Fatalf("%v is known before a packet", peer)
		}
		w.on(lab.B, func() error { // B's kernel solicits A, which also tells A the address of B
			conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr(lab.A), 9)))
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write([]byte("x"))
			return err
		})
		w.until("the neighbour is known", func() bool { return r.Known(anyPort(peer)) })
		version := r.Version()
		w.must(w.nl[lab.A].NeighDel(&netlink.Neigh{LinkIndex: w.table.index, IP: peer.AsSlice()}))
		w.until("the neighbour is unknown", func() bool { return !r.Known(anyPort(peer)) })
		w.until("the version is another", func() bool { return r.Version() != version })
	}
}

// On an interface without neighbours every destination is Known. Changes of routes are followed.
func TestReachWithoutNeighbours(t *testing.T) {
	w := newWorld(t)
	tunnel := netip.MustParsePrefix("10.74.0.1/24")
	w.on(lab.A, func() error { return labtest.AddTunnel("tun0", tunnel) })
	r := w.openReach(lab.A)
	free := []string{lab.A.Addr4().String(), lab.A.Addr6().String(), "127.0.0.7", "::1", "10.74.0.9", "192.0.2.1", "2001:db8::1"}
	for _, s := range free {
		w.until(s+" is known", func() bool { return r.Known(anyPort(netip.MustParseAddr(s))) }) // routes of IPv6 addresses come late
	}
	absent := netip.MustParseAddr("10.73.0.77")
	if r.Known(anyPort(absent)) {
		t.Errorf("%v is known", absent)
	}
	_, dst, err := net.ParseCIDR("10.73.0.64/26")
	w.must(err)
	behind := &netlink.Route{LinkIndex: w.table.index, Dst: dst, Gw: lab.B.Addr4().AsSlice()}
	w.must(w.nl[lab.A].RouteAdd(behind))
	w.until("behind a gateway", func() bool { return r.Known(anyPort(absent)) })
	w.must(w.nl[lab.A].RouteDel(behind))
	w.until("on the segment again", func() bool { return !r.Known(anyPort(absent)) })
	w.on(lab.A, func() error { return labtest.Delete("tun0") })
}

// A neighbour stays Known if one of two interfaces loses it.
func TestReachOnTwoInterfaces(t *testing.T) {
	r := asking(time.Now())
	peer := netip.MustParseAddr("192.0.2.1")
	entry := func(index, state int) *netlink.Neigh {
		return &netlink.Neigh{LinkIndex: index, Family: netlink.FAMILY_V4, State: state, IP: peer.AsSlice()}
	}
	for i, step := range []struct {
		m    *netlink.Neigh
		gone bool
		want bool
	}{
		{entry(1, netlink.NUD_INCOMPLETE), false, false},
		{entry(1, netlink.NUD_REACHABLE), false, true},
		{entry(2, netlink.NUD_STALE), false, true},
		{entry(1, netlink.NUD_FAILED), false, true},
		{entry(1, netlink.NUD_FAILED), true, true},
		{entry(2, netlink.NUD_STALE), true, false},
	} {
		r.sight(step.m, step.gone)
		if got := r.macs.find(peer) != nil; got != step.want {
			t.Errorf("step %d: known is %v", i, got)
		}
	}
}

// asking returns a Reach that only answers Ask.
func asking(now time.Time) *Reach {
	return &Reach{macs: newMACTable(), on: make(map[netip.Addr][]int),
		asks: bucket{tokens: resolveBurst, at: now}, attempts: newMACTable()}
}

func invented(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

// Ask limits its answers to the rate at which a Table resolves neighbours.
func TestReachAsksSlowly(t *testing.T) {
	now := time.Now()
	r := asking(now)
	i := 0
	asked := func(d time.Duration) (n int) {
		for end := now.Add(d); now.Before(end); now = now.Add(time.Millisecond) {
			if i++; r.Ask(invented(i), now) {
				n++
			}
		}
		return n
	}
	const pauses = 20
	if n := asked(pauses * resolvePause); n < resolveBurst+pauses-1 || n > resolveBurst+pauses {
		t.Errorf("%d answers in %v", n, pauses*resolvePause)
	}
	now = now.Add(time.Hour)
	if n := asked(resolvePause / 2); n != resolveBurst {
		t.Errorf("%d answers after an hour without, want %d", n, resolveBurst)
	}
}

// A new host is answered at once after the resolution of all forged addresses of its subnet has failed.
func TestReachAnswersNewcomerOfSmallSubnet(t *testing.T) {
	now := time.Now()
	r := asking(now)
	flood := func(d time.Duration, addrs int) {
		for i, end := 0, now.Add(d); now.Before(end); i, now = i+1, now.Add(time.Second/8000) {
			r.Ask(invented(i%addrs), now)
		}
	}
	flood(30*time.Second, 254)
	for i := range resolveBurst / 2 {
		if flood(time.Second, 254); !r.Ask(invented(1000+i), now) {
			t.Errorf("newcomer %d is not answered", i)
		}
	}
}

// A neighbour that was resolved, and is not any more, has all tokens again.
func TestReachForgetsTheAttempt(t *testing.T) {
	now := time.Now()
	r := asking(now)
	peer := netip.MustParseAddr("192.0.2.1")
	admitted := func() (n int) {
		for range resolveBurst {
			if r.Ask(peer, now) {
				n++
			}
		}
		return n
	}
	if n := admitted(); n != resolveBurst/2 {
		t.Errorf("%d answers to one neighbour, want %d", n, resolveBurst/2)
	}
	r.sight(&netlink.Neigh{Family: netlink.FAMILY_V4, State: netlink.NUD_REACHABLE, IP: peer.AsSlice()}, false)
	if !r.Ask(peer, now) {
		t.Error("no answer to a neighbour that was resolved")
	}
	now = now.Add(resolveMemory)
	r.Ask(peer, now)
	if now = now.Add(resolveMemory - time.Second); admitted() != resolveBurst/2 {
		t.Error("the attempt is forgotten early")
	}
}
