package wire

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// restart makes a node lose all state, its secrets included, like a process that was killed and started again.
func (w *world) restart(n *node) {
	w.t.Helper()
	n.eng.Close()
	w.seed++
	h, err := NewHost(randReader{randSource(w.seed << 8)}, Limits{})
	if err != nil {
		w.t.Fatal(err)
	}
	n.host = h
	if n.eng, err = h.NewEngine(n.link, Time(w.net.Now())); err != nil {
		w.t.Fatal(err)
	}
}

// A restart of the peer must be noticed with the first packet that is sent to the peer, long before GiveUp.
func TestPeerThatRestarts(t *testing.T) {
	for _, loss := range []float64{0, 0.2} {
		w := newWorld(t, simlink.Config{Delay: time.Microsecond, Loss: loss, Seed: 5}, 2)
		a, b := w.nodes[0], w.nodes[1]
		ca, _ := w.pair(plain)
		src, dst := a.memory(64), b.memory(64)
		w.restart(b)
		a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
		w.until("the connection to break", 100*time.Millisecond, func() bool { return ca.State() == Closed })
		var c Completion
		if !a.request.Pop(&c) || c.Status != StatusTransport {
			t.Errorf("write: %+v", c)
		}
		w.want(a.connect, KindBroken)
		w.run(2 * time.Second)
		if a.eng.Connections() != 0 || len(a.host.peers.cids) != 0 {
			t.Errorf("%d connections, %d peers left", a.eng.Connections(), len(a.host.peers.cids))
		}
	}
}

// An attacker forges Resets and knows everything but the time stamp of the challenge ACK. However many Resets arrive,
// their only effect must be one challenge ACK.
func TestForgedReset(t *testing.T) {
	w := newWorld(t, simlink.Config{}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(plain)
	w.run(time.Millisecond)
	for i := range uint32(1000) {
		w.inject(b, a, &proto.Header{Type: proto.Reset, CID: cb.cid, Tag: ca.peerTag, PSN: ca.sent.Nxt, Echo: i}, nil)
	}
	src, dst := a.memory(64), b.memory(64)
	a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	w.until("the write", time.Second, func() bool { return a.request.Len() == 1 })
	if ca.State() != Established || ca.challenge.pending {
		t.Errorf("state %d, challenge ACK %+v", ca.State(), ca.challenge)
	}
}

// A restarted host receives a flood of packets of unknown connections. Its honest peer must notice the restart within a
// second if 20,000 packets/s come from one address, from one network, or from the peer's own address. If 60,000
// packets/s come from random addresses, the peer must nearly always notice within a second. The limit of stateless
// replies must hold.
func TestRestartIsNoticedInAFlood(t *testing.T) {
	const seeds = 10
	for _, tc := range []struct {
		name string
		from func(s *siege, r *rand.Rand) netip.AddrPort
		rate int // packets/s
		late int // largest number of restarts that may be noticed later
	}{
		{"one address", func(s *siege, _ *rand.Rand) netip.AddrPort { return s.foe.addr }, 20_000, 0},
		{"one network", func(_ *siege, r *rand.Rand) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(r.Uint32())}), 17473)
		}, 20_000, 0},
		{"the peer's address", func(s *siege, _ *rand.Rand) netip.AddrPort { return s.friend.addr }, 20_000, 0},
		{"made up", func(_ *siege, r *rand.Rand) netip.AddrPort { return anyAddr(r) }, 60_000, seeds / 10},
	} {
		for _, burst := range []int{1, 200} {
			t.Run(fmt.Sprintf("%s, %d at once", tc.name, burst), func(t *testing.T) {
				late := 0
				for seed := range uint64(seeds) {
					if took := noticed(t, seed, burst, tc.rate, tc.from); took > time.Second {
						late++
					}
				}
				if late > tc.late {
					t.Errorf("%d of %d restarts were not noticed in a second", late, seeds)
				}
			})
		}
	}
}

// noticed returns the time in which a peer notices a restart, up to about one second.
func noticed(t *testing.T, seed uint64, burst, rate int, from func(*siege, *rand.Rand) netip.AddrPort) time.Duration {
	s := newSiegeOn(t, simlink.Config{Frames: 8 * siegeFrames, Delay: time.Microsecond, Seed: 1})
	s.victim.eng.Close()
	h, err := NewHost(randReader{randSource(12345 + seed)}, s.limits)
	if err != nil {
		t.Fatal(err)
	}
	if s.victim.eng, err = h.NewEngine(s.guise, Time(s.net.Now())); err != nil {
		t.Fatal(err)
	}
	s.foe.down = true
	r := randSource(seed)
	s.guise.as = func() netip.AddrPort { return from(s, r) }
	flood := func() {
		for range burst {
			s.send(&proto.Header{Type: proto.Data, CID: r.Uint32(), Tag: r.Uint32(), PSN: seq.Num(r.Uint32())}, nil)
		}
		s.exactly(time.Duration(burst) * time.Second / time.Duration(rate))
	}
	begin := s.net.Now()
	for s.net.Now() < begin+int64(100*time.Millisecond) {
		flood()
	}
	s.friend.post(s.ca, s.ca.PostWrite(s.src.seg(0, 64), 1, s.dst.at(0), 0))
	start := s.net.Now()
	for s.ca.State() == Established && s.net.Now()-start <= int64(time.Second) {
		flood()
	}
	most := uint64(replyBurst) * (2 + uint64((s.net.Now()-begin)/int64(replyPeriod)))
	if n := s.victim.eng.Stats().Resets; n > most {
		t.Errorf("%d answers, want %d at most", n, most)
	}
	return time.Duration(s.net.Now() - start)
}
