//go:build !race

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
