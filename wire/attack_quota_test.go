package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/slotkey"
)

// Attack 21: one address requests all connections. It must be refused beyond its share, and others must connect.
func TestAttack21OneAddress(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		e := s.victim.eng
		e.conns.places = 30
		for cid := uint32(1); s.out.packets == 0 && cid < 100; cid++ {
			s.connect(s.foe.addr, cid)
			for _, r := range s.victim.arrived {
				path, err := s.victim.link.Resolve(s.foe.addr, 0)
				if err == nil {
					err = e.Accept(r, s.victim.host.NewConn(plain), path, nil, s.victim.completions())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			s.land()
			s.out = traffic{}
			s.victim.arrived = nil
			if !e.conns.hasPlace(s.foe.addr.Addr()) {
				s.connect(s.foe.addr, cid+1)
			}
		}
		if s.out.types[proto.Reject] != 1 || len(s.victim.arrived) != 0 {
			t.Errorf("answers by type %v, %d requests at the consumer", s.out.types, len(s.victim.arrived))
		}
		if n := e.conns.used; n < 14 || n > 16 { // one of them is the bystander's
			t.Errorf("%d of 30 places are taken", n)
		}
		if !e.conns.hasPlace(netip.MustParseAddr("192.0.2.1")) {
			t.Error("there is no room for another address")
		}
		s.guise.as = nil
		s.run(e.host.limits.GiveUp + 3*time.Second)
		s.drain()
		for s.victim.connect.Len() > 0 {
			s.want(s.victim.connect, KindAcceptFailed)
		}
		s.finish()
		if e.conns.used != 0 || len(e.conns.held) != 0 {
			t.Errorf("%d places of %d holders left", e.conns.used, len(e.conns.held))
		}
	})
}

// Attack 21: a peer does not answer the Close of its connections. While the victim repeats Close, such a connection
// occupies a slot of the table. Meanwhile it must count against the quota of the peer's address.
func TestAttack21LingersCount(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		e := s.victim.eng
		cv, _ := s.join(plain)
		used, slots := e.conns.used, e.table.usedSlots
		if err := e.Disconnect(cv, false); err != nil {
			t.Fatal(err)
		}
		if e.conns.used != used || e.table.usedSlots != slots {
			t.Errorf("%d places and %d slots while Close is repeated, want %d and %d", e.conns.used, e.table.usedSlots, used, slots)
		}
		s.run(e.host.limits.GiveUp + 3*time.Second)
		if e.conns.used != used-1 || e.table.usedSlots != slots-1 {
			t.Errorf("%d places and %d slots at the end, want %d and %d", e.conns.used, e.table.usedSlots, used-1, slots-1)
		}
		s.drain()
		s.want(s.victim.connect, KindDisconnected)
		s.finish()
		if e.conns.used != 0 || len(e.conns.held) != 0 {
			t.Errorf("%d places of %d holders left", e.conns.used, len(e.conns.held))
		}
	})
}

// Attack 21: a few addresses of a network take all places that a quota allows the network. Another address of the
// network must still get one place, but not a second place. A host that has every address of a network must leave
// places for other networks.
func TestAttack21NewcomerOfAFullNetwork(t *testing.T) {
	addr := func(network, host int) netip.Addr {
		return netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 7: byte(network), 13: byte(host >> 16), 14: byte(host >> 8), 15: byte(host)})
	}
	for _, tc := range []struct {
		name   string
		quota  quota
		prefix float64
	}{
		{"half-open requests", newAdmission().halfOpen, halfOpenPrefix},
		{"connections", newAdmission().conns, connsPrefix},
		{"answers", newReplyLimiter([32]byte{}).quota, replyPrefix},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q, few := tc.quota, 8
			for i, refused := 0, 0; refused < few; i++ {
				if a := addr(0, i%few); q.hasPlace(a) {
					q.addPlace(a)
					refused = 0
				} else {
					refused++
				}
			}
			if want := alone(tc.prefix, q.places); q.used < want-few || q.used > want+few {
				t.Errorf("a few addresses have %d places, want %d", q.used, want)
			}
			if honest := addr(0, 1<<20); !q.hasPlace(honest) {
				t.Error("a neighbour gets no place")
			} else if q.addPlace(honest); q.hasPlace(honest) {
				t.Error("a neighbour gets a second place")
			}
			for i := few; i < few+q.places; i++ {
				if a := addr(0, i); q.hasPlace(a) {
					q.addPlace(a)
				}
			}
			if want := alone(newcomerFactor*tc.prefix, q.places); q.used > want {
				t.Errorf("a network has %d places, want %d at most", q.used, want)
			}
			if !q.hasPlace(addr(1, 0)) {
				t.Error("another network gets no place")
			}
		})
	}
}

// Attack 21: a few addresses hold the share of their network. A neighbour without a connection must connect.
func TestAttack21NeighbourConnects(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		e := s.victim.eng
		e.conns.places = 30
		foe := func(i uint32) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(50 + i%8)}) }
		for cid := uint32(1); cid < 100; cid++ {
			s.connect(netip.AddrPortFrom(foe(cid), 17473), cid)
			s.acceptAll()
		}
		if e.conns.hasPlace(foe(0)) || e.conns.hasPlace(s.friend.addr.Addr()) {
			t.Error("there is room for the foes or the friend: the test tests nothing")
		}
		honest := s.addNode(netip.MustParseAddrPort("10.0.0.9:17473"))
		c := honest.host.NewConn(plain)
		s.guise.as = nil
		s.dial(honest, s.victim, c, nil)
		s.until("the request", time.Second, func() bool { return len(s.victim.arrived) > 0 })
		s.acceptAll()
		s.until("the connection", time.Second, func() bool { return c.State() == Established })
		honest.eng.Drop(c)
		for range 10 { // until the connections of the foes break
			s.run(e.host.limits.GiveUp / 5)
			s.acceptAll()
		}
		s.finish()
		if e.conns.used != 0 || len(e.conns.held) != 0 {
			t.Errorf("%d places of %d holders left", e.conns.used, len(e.conns.held))
		}
	})
}

// Attack 15: an attacker guesses remote keys, and each wrong key costs the attacker a connection. The attacker must
// wait longer and longer for the next connection, but other hosts must not wait. The wait becomes shorter with time.
func TestAttack15KeyGuesses(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		start := s.net.Now()
		const guesses = freeGuesses + 20
		for range guesses {
			cv, _ := s.join(plain)
			h := s.header(cv, proto.Data)
			s.strike(&h, writeChunk(proto.Last, 1, 0xbad, 0))
			s.broken(cv, proto.ReasonAccess)
			s.foe.down = false
			s.run(10 * time.Millisecond)
			for s.foe.connect.Len() > 0 {
				s.foe.connect.Pop(new(Completion))
			}
		}
		took := time.Duration(s.net.Now() - start)
		if took < 4*maxGuessDelay {
			t.Errorf("%d guesses took %v, want some seconds", guesses, took)
		}
		p := s.victim.eng.keyGuesses
		now := Time(s.net.Now())
		if p.blocked(s.friend.addr.Addr(), now) {
			t.Error("the bystander's address has to wait")
		}
		if p.addrs.prune(now.Add(guesses * guessDecay)); len(p.addrs) != 0 {
			t.Errorf("%d addresses are not forgiven", len(p.addrs))
		}
		s.finish()
	})
}

// The memory for guessing addresses must be bounded, and so must the time for each new one.
func TestPenaltiesAreBounded(t *testing.T) {
	p := newGuessLimiter()
	for i := range 3 * maxGuessers {
		p.recordGuess(netip.AddrFrom16([16]byte{0x20, 1, 2: byte(i), 3: byte(i >> 8), 15: 1}), 0)
	}
	if len(p.addrs) > maxGuessers || len(p.networks) > maxGuessers {
		t.Errorf("%d addresses and %d networks remembered, want %d at most", len(p.addrs), len(p.networks), maxGuessers)
	}
	for i := 0; len(p.addrs) < maxGuessers; i++ {
		p.recordGuess(netip.AddrFrom16([16]byte{0x20, 2, 2: byte(i), 3: byte(i >> 8), 15: 1}), 0)
	}
	p.recordGuess(netip.MustParseAddr("2003::1"), 0) // visits the whole table, but the next guesses do not
	if n := len(p.addrs); n != maxGuessers*7/8+1 {
		t.Errorf("%d addresses after one more guess, want %d", n, maxGuessers*7/8+1)
	}
}

// Attack 15: a host uses many addresses of an IPv6 /64 to guess remote keys. Each of these addresses must be blocked
// because of its own guesses. An honest host with another address of the same /64 may be blocked because of its
// neighbours' guesses, but for less than a second.
func TestAttack15NeighbourOfAGuesser(t *testing.T) {
	p := newGuessLimiter()
	guesser := func(i int) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 1, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)})
	}
	now := Time(0)
	for range freeGuesses + 10 {
		p.recordGuess(guesser(0), now)
	}
	honest := netip.MustParseAddr("2001::ffff:ffff")
	if !p.blocked(guesser(0), now) || p.blocked(honest, now) || p.blocked(guesser(1), now) {
		t.Error("want the guesser to wait, and none beside it")
	}
	closed := 0
	for i := range 5000 {
		for range 3 {
			p.recordGuess(guesser(i), now)
		}
		now = now.Add(time.Millisecond)
		if i%100 == 0 { // newcomers begin at any time
			asked, tries := now, now
			for at := now; p.blocked(honest, at); at = at.Add(time.Millisecond) {
				p.recordGuess(guesser(i+int(at)), at)
				closed++
				tries = at
			}
			if d := tries.Sub(asked); d > time.Second-2*helloRetryMax {
				t.Fatalf("a newcomer waits for %v", d)
			}
		}
	}
	if closed == 0 {
		t.Error("the network never waits: the test tests nothing")
	}
	if p.blocked(netip.MustParseAddr("2001:0:0:1::1"), now) {
		t.Error("another network waits")
	}
}

// A remote key must not be used again while a peer may still remember it. A key consists of a slot and a generation. In
// a series of 2^16 registrations, each must use another slot, and the next use of a slot must have the next of its 2^12
// generations. So a key is used again only after 2^28 registrations.
func TestKeyPeriod(t *testing.T) {
	s := newSiege(t)
	h := s.victim.host
	var first, last uint32
	for i := range slotkey.MinFree + 2 {
		r, err := h.Register(nil, 0, 1, allRights)
		if err != nil {
			t.Fatal(err)
		}
		if h.Unregister(r); i == 0 {
			first = r.local
		}
		last = r.local
	}
	used, _ := h.regions.Counts()
	if first&regionMask == last&regionMask && first>>regionBits+1 != last>>regionBits || used < slotkey.MinFree {
		t.Errorf("first key %#x, key %d later %#x, %d slots", first, slotkey.MinFree+1, last, used)
	}
	s.finish()
}
