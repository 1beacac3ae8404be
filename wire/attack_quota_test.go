package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Attack 21: one address does not get all places for connections, and is told so; others do.
func TestAttack21OneAddress(t *testing.T) {
	s := newSiege(t)
	e := s.victim.eng
	e.conns.places = 30
	for cid := uint32(1); s.out.packets == 0 && cid < 100; cid++ {
		s.connect(s.foe.addr, cid)
		for _, r := range s.victim.arrived {
			path, err := s.victim.link.Resolve(s.foe.addr, 0)
			if err == nil {
				err = e.Accept(r, s.victim.host.NewConn(plain), path, nil, s.victim.sinks())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s.drain()
		s.out = traffic{}
		s.victim.arrived = nil
		if !e.conns.room(s.foe.addr.Addr()) {
			s.connect(s.foe.addr, cid+1)
		}
	}
	if s.out.types[proto.Reject] != 1 || len(s.victim.arrived) != 0 {
		t.Errorf("answers by type %v, %d requests at the consumer", s.out.types, len(s.victim.arrived))
	}
	if n := e.conns.used; n < 14 || n > 16 { // the bystander's is one
		t.Errorf("%d of 30 places are taken", n)
	}
	if !e.conns.room(netip.MustParseAddr("192.0.2.1")) {
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
}

// Attack 15: whoever goes on guessing remote keys, at the price of a connection each, waits longer and longer
// for the next connection. Others do not wait, and time forgives.
func TestAttack15KeyGuesses(t *testing.T) {
	s := newSiege(t)
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
	if took < 8*maxGuessDelay {
		t.Errorf("%d guesses took %v, want some seconds", guesses, took)
	}
	p := s.victim.eng.penalties
	now := Time(s.net.Now())
	if p.waits(s.friend.addr.Addr(), now) {
		t.Error("the bystander's address has to wait")
	}
	if p.forgive(now.Add(guesses * forgiveTime)); len(p) != 0 {
		t.Errorf("%d networks are not forgiven", len(p))
	}
	s.finish()
}

// However many networks guess, what is remembered of them is bounded; a guesser of IPv6 is its /64.
func TestPenaltiesAreBounded(t *testing.T) {
	p := make(penalties)
	for i := range 3 * maxPenalties {
		p.blame(netip.AddrFrom16([16]byte{0x20, 1, 2: byte(i), 3: byte(i >> 8), 15: 1}), 0)
	}
	if len(p) > maxPenalties {
		t.Errorf("%d networks remembered, want %d at most", len(p), maxPenalties)
	}
	q := make(penalties)
	for i := range 2 * freeGuesses {
		q.blame(netip.AddrFrom16([16]byte{0x20, 1, 14: byte(i >> 8), 15: byte(i)}), 0)
	}
	if len(q) != 1 || !q.waits(netip.MustParseAddr("2001::ffff"), 1) || q.waits(netip.MustParseAddr("2001:0:0:1::1"), 1) {
		t.Errorf("%d networks; one /64 is to wait", len(q))
	}
}

// A remote key does not come back while a peer may remember it: 2^16 registrations use as many slots, and each
// slot has 2^12 generations.
func TestKeyPeriod(t *testing.T) {
	s := newSiege(t)
	h := s.victim.host
	var first, last uint32
	for i := range minFree + 2 {
		r, err := h.Register(nil, 0, 1, allRights)
		if err != nil {
			t.Fatal(err)
		}
		if h.Unregister(r); i == 0 {
			first = r.local
		}
		last = r.local
	}
	if first&regionMask == last&regionMask && first>>regionBits+1 != last>>regionBits || h.regions.used < minFree {
		t.Errorf("first key %#x, key %d later %#x, %d slots", first, minFree+1, last, h.regions.used)
	}
	s.finish()
}
