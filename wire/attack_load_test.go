package wire

import (
	"net/netip"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/reassembly"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Attack 19: foes send packets with PSNs far ahead in the window, but never the packet that the victim expects next.
// The number of frames that all connections hold must be bounded. The bystander's connection must make progress on a
// lossy network, even if there is no room for its early packets.
func TestAttack19WindowBomb(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		for _, foes := range []int{1, 2, 4} {
			s := newModeSiege(t, keys)
			var conns []*Conn
			for range foes {
				s.foe.down = false
				cv, _ := s.join(plain)
				conns = append(conns, cv)
			}
			limit := s.victim.link.Caps().RxFrames
			for round := range 3 {
				for i := range 2 * maxWindow {
					for _, cv := range conns {
						h := s.header(cv, proto.Data)
						h.PSN += seq.Num(2*maxWindow - i)
						if round == 1 {
							h.PSN = cv.recv.nextPSN + maxWindow - 1
						}
						s.strike(&h, make([]byte, 1000))
						if n := s.victim.eng.heldFrames; n > limit {
							t.Fatalf("%d frames held, limit %d", n, limit)
						}
					}
				}
				s.net.SetLoss(s.friend.addr, s.victim.addr, 0.2)
				s.work()
				s.net.SetLoss(s.friend.addr, s.victim.addr, 0)
			}
			if s.victim.eng.heldFrames != limit {
				t.Errorf("%d frames held, want %d: the test tests nothing", s.victim.eng.heldFrames, limit)
			}
			if s.out.packets > s.in.packets {
				t.Errorf("%d packets in answer to %d", s.out.packets, s.in.packets)
			}
			s.until("the end of the silent foes", 14*time.Second, func() bool { return s.victim.connect.Len() == foes })
			for range foes {
				s.want(s.victim.connect, KindBroken)
			}
			s.run(time.Second)
			if s.victim.eng.heldFrames != 0 {
				t.Errorf("%d frames still held", s.victim.eng.heldFrames)
			}
			s.finish()
		}
	})
}

// Attack 19: a foe's connections hold as many packets as there is room for. In one case, the packets that these
// connections expect next never arrive. In the other case, the expected packets wait for receives. The foe's
// connections must not prevent another connection from holding its own early packets on a lossy path.
func TestAttack19HolesThatStayOpen(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		fill := func(s *siege, foes int, cfg ConnConfig, ahead func(i int) int) {
			var conns []*Conn
			for range foes {
				s.foe.down = false
				cv, _ := s.join(cfg)
				conns = append(conns, cv)
			}
			limit := s.victim.link.Caps().RxFrames
			for i := 0; i < limit && foes > 0 && s.victim.eng.heldFrames < limit; i++ {
				for _, cv := range conns {
					h := s.header(cv, proto.Data)
					h.PSN += seq.Num(ahead(i))
					s.strike(&h, sendChunk(0, 64, 0, 0))
				}
			}
			if foes > 0 && s.victim.eng.heldFrames != limit {
				t.Fatalf("%d frames held, want %d: the test tests nothing", s.victim.eng.heldFrames, limit)
			}
		}
		resends := func(frames, foes int, cfg ConnConfig, ahead func(i int) int) uint64 {
			s := newModeSiegeOn(t, simlink.Config{Frames: frames, Delay: time.Microsecond, Seed: 1, Rate: 1e9, QueueFrames: 1000}, keys)
			fill(s, foes, cfg, ahead)
			s.net.SetLoss(s.friend.addr, s.victim.addr, 0.02)
			before, dropped := s.friend.eng.stats.Retransmits, s.victim.eng.stats.EarlyDropped
			src, dst := s.friend.memory(1<<20), s.victim.memory(1<<20)
			for range 4 {
				s.friend.post(s.ca, s.ca.PostWrite(src.seg(0, 1<<20), 1, dst.at(0), 0))
				s.until("a write", 5*time.Second, func() bool { return s.friend.request.Len() == 1 })
				s.friend.request.Pop(new(Completion))
			}
			t.Logf("%d foes: %d resends, %d early packets dropped", foes, s.friend.eng.stats.Retransmits-before, s.victim.eng.stats.EarlyDropped-dropped)
			return s.friend.eng.stats.Retransmits - before
		}
		ahead := func(i int) int { return 1 + i }
		alone := resends(4*siegeFrames, 0, plain, nil)
		for _, foes := range []int{2, 6} {
			if n := resends(4*siegeFrames, foes, plain, ahead); n > alone*3/2 {
				t.Errorf("%d resends beside %d foes, %d without", n, foes, alone)
			}
		}
		waits := plain
		waits.NoCredit = true
		limit := newModeSiegeOn(t, simlink.Config{Frames: siegeFrames, Delay: time.Microsecond, Seed: 1}, keys).victim.link.Caps().RxFrames
		alone = resends(siegeFrames, 0, plain, nil)
		if n := resends(siegeFrames, limit, waits, func(int) int { return 0 }); n > alone*3/2 {
			t.Errorf("%d resends beside %d foes whose packets wait, %d without", n, limit, alone)
		}
	})
}

// renewer is a foe that holds early packets on its connections, and also sends the packets that the victim expects next.
type renewer struct {
	*siege
	conns []*Conn
	next  []seq.Num
	at    int64 // when it sends again
}

// renew sends, on each connection, the packet that the victim expects and packets from the far end of the window.
func (r *renewer) renew() {
	const interval, refill = int64(200 * time.Microsecond), 8
	if r.net.Now() < r.at {
		return
	}
	r.at = r.net.Now() + interval
	for i, cv := range r.conns {
		h := r.header(cv, proto.Data)
		for d := range refill {
			h.PSN = r.next[i] + proto.MaxWindow - 1 - seq.Num(d)
			r.send(&h, nil)
		}
		h.PSN = r.next[i]
		r.send(&h, nil)
		r.next[i]++
	}
	r.drain()
}

// Attack 19: a foe's connections hold as many packets as there is room for. Several times in a round trip of the friend,
// each of these connections gets the packet that it expects next, so that its missing packet is always a new one. The
// foe's connections must not prevent another connection from holding its own early packets on a lossy path.
func TestAttack19HolesThatAreRenewed(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		resends := func(foes int) uint64 {
			s := newModeSiegeOn(t, simlink.Config{Frames: 4 * siegeFrames, Delay: time.Millisecond, Seed: 1, Rate: 1e9, QueueFrames: 1000}, keys)
			r := renewer{siege: s}
			for range foes {
				s.foe.down = false
				cv, _ := s.join(plain)
				r.conns, r.next = append(r.conns, cv), append(r.next, cv.recv.nextPSN)
			}
			limit := s.victim.link.Caps().RxFrames
			for i := range limit / 2 {
				for _, cv := range r.conns {
					h := s.header(cv, proto.Data)
					h.PSN += proto.MaxWindow - 1 - seq.Num(i)
					s.strike(&h, nil)
				}
			}
			s.run(5 * time.Millisecond)
			if foes > 0 && s.victim.eng.heldFrames != limit {
				t.Fatalf("%d frames held, want %d: the test tests nothing", s.victim.eng.heldFrames, limit)
			}
			s.net.SetLoss(s.friend.addr, s.victim.addr, 0.02)
			before, start := s.friend.eng.stats.Retransmits, s.net.Now()
			src, dst := s.friend.memory(1<<18), s.victim.memory(1<<18)
			for range 8 {
				s.friend.post(s.ca, s.ca.PostWrite(src.seg(0, 1<<18), 1, dst.at(0), 0))
				s.until("a write", 5*time.Second, func() bool {
					r.renew()
					return s.friend.request.Len() == 1
				})
				s.friend.request.Pop(new(Completion))
			}
			n := s.friend.eng.stats.Retransmits - before
			t.Logf("%d foes: %d resends in %v, %d frames held", foes, n, time.Duration(s.net.Now()-start), s.victim.eng.heldFrames)
			return n
		}
		alone := resends(0)
		for _, foes := range []int{3, 6} {
			if n := resends(foes); n > alone*3/2 {
				t.Errorf("%d resends beside %d foes, %d without", n, foes, alone)
			}
		}
	})
}

// Attack 19: each of many connections sends one packet from the far end of the window. A connection whose early packet
// was evicted must not keep a table for early packets.
func TestAttack19TablesAreReturned(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		const foes, table = 600, proto.MaxWindow * int(unsafe.Sizeof(reassembly.Packet{}))
		s := newModeSiege(t, keys)
		conns := s.joinMany(foes, plain)
		heap := func() int {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		before := heap()
		for _, cv := range conns {
			h := s.header(cv, proto.Data)
			h.PSN += proto.MaxWindow - 1
			s.strike(&h, nil)
		}
		grown := heap() - before
		limit := s.victim.link.Caps().RxFrames
		t.Logf("%d tables of %d bytes for %d connections, which hold %d frames of %d", grown/table, table, foes, s.victim.eng.heldFrames, limit)
		if s.victim.eng.heldFrames != limit {
			t.Error("not all frames are held: the test tests nothing")
		}
		if most := (limit + 2*reassembly.PoolSize) * table; grown > most {
			t.Errorf("the heap has grown by %d bytes, want %d at most", grown, most)
		}
		runtime.KeepAlive(conns)
		for _, cv := range conns {
			s.drop(cv)
		}
		if n := s.victim.eng.tables.Len(); n > reassembly.PoolSize {
			t.Errorf("%d tables wait in the pool, want %d at most", n, reassembly.PoolSize)
		}
		s.finish()
	})
}

// Attack 21: a client with valid cookies requests more connections than the table can hold. Established connections
// must stay, and the excess request must be refused.
func TestAttack21TableFull(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		e := s.victim.eng
		e.table.slots = append(e.table.slots, make([]slotEntry, maxConns-len(e.table.slots))...)
		e.table.free = nil
		c := s.foe.host.NewConn(plain)
		for range 3 {
			s.dial(s.foe, s.victim, c, nil)
			s.until("request", time.Second, func() bool { return len(s.victim.arrived) == 1 })
			r := s.victim.arrived[0]
			s.victim.arrived = nil
			for _, accept := range []bool{true, false} {
				path, err := s.victim.link.Resolve(r.From, 0)
				if err != nil {
					t.Fatal(err)
				}
				if accept {
					if err = e.Accept(r, s.victim.host.NewConn(plain), path, nil, s.victim.completions()); err != ErrTooManyConns {
						t.Errorf("Accept: %v, want %v", err, ErrTooManyConns)
					}
				} else if err = e.Refuse(r, path); err != nil {
					t.Error(err)
				}
			}
			s.until("refusal", time.Second, func() bool { return c.State() == Closed })
			s.want(s.foe.connect, KindRefused)
			if err := s.foe.eng.Reset(c); err != nil {
				t.Fatal(err)
			}
			s.work()
		}
		s.finish()
	})
}

// Attack 21: a client does not confirm its accepted requests. Each accept must fail within GiveUp and leave nothing.
func TestAttack21NeverTakenUp(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		const count = 200
		for i := range count {
			from := netip.AddrPortFrom(s.foe.addr.Addr(), uint16(i)+1)
			s.connect(from, uint32(i)+1)
		}
		paths := s.victim.arrived
		s.victim.arrived = nil
		for _, r := range paths {
			path, err := s.victim.link.Resolve(s.foe.addr, 0)
			if err == nil {
				err = s.victim.eng.Accept(r, s.victim.host.NewConn(plain), path, nil, s.victim.completions())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s.guise.as, s.foe.down = nil, true
		for end := s.net.Now() + int64(s.victim.host.limits.GiveUp+2*time.Second); s.net.Now() < end; {
			s.work()
			s.run(100 * time.Millisecond)
			s.drain()
		}
		for range count {
			s.want(s.victim.connect, KindAcceptFailed)
		}
		if got := s.gauges(); got.conns != 1 || got.requests != 1 || got.opening != 0 || got.sources != 0 || got.peers != 1 || got.paths != 1 {
			t.Errorf("left over: %+v", got)
		}
		s.finish()
	})
}

// Attack 20 at the link: a packet storm fills the receive ring. The bystander's lost packets must be sent again.
func TestAttack20StormFillsTheRing(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiegeOn(t, simlink.Config{Frames: siegeFrames, Delay: time.Microsecond, Seed: 20}, keys)
		r := randSource(20)
		friend := s.friend
		s.victim.postRecv(s.cb, s.dst.seg(0, 64), 1)
		friend.post(s.ca, s.ca.PostSend(s.src.seg(0, 64), 1, 0))
		for i := 0; friend.request.Len() == 0; i++ {
			for range siegeFrames / 2 { // twice as many as a Poll receives
				s.send(&proto.Header{Type: proto.Data, CID: r.Uint32()}, nil)
			}
			s.land()
			friend.eng.Poll(Time(s.net.Now()))
			if i > 10_000 {
				t.Fatal("the bystander's message did not get through")
			}
		}
		var c Completion
		if friend.request.Pop(&c); c.Status != StatusSuccess || !s.victim.recv.Pop(&c) {
			t.Errorf("%+v", c)
		}
		if s.victim.link.Stats().RxDropped == 0 {
			t.Error("no packet was dropped: the test tests nothing")
		}
		s.run(time.Millisecond)
		s.finish()
	})
}
