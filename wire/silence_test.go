package wire

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// A crowd is 400 connections of one client to one server, which together carry 200 messages/s. It models, at a tenth of
// the size, a server with 4000 connections and 2000 messages/s over kernel UDP. The UDP socket of such a server has
// room for about ten thousand small packets, hence for two or three packets of each connection. The link of the crowd
// has room for as many packets of each connection: it has 1024 frames for the 400 connections.
type crowd struct {
	*world
	client, server *node
	ends           [2][]*Conn
	mem            [2]memory
	sent, done     int
	nextAt         int64
}

const (
	crowdSize  = 400
	crowdEvery = int64(5 * time.Millisecond) // 200 messages/s
)

func newCrowd(t *testing.T) *crowd {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond, Frames: 1024, Unchecked: true}, 2)
	c := &crowd{world: w, client: w.nodes[0], server: w.nodes[1]}
	c.mem = [2]memory{c.client.memory(64), c.server.memory(64)}
	cfg := plain
	cfg.MaxRecv, cfg.MaxRequest = 8, 32
	for range crowdSize {
		ca, cb := w.pair(cfg)
		for range cfg.MaxRecv {
			c.server.postRecv(cb, c.mem[1].seg(0, 64), uint64(len(c.ends[1])))
		}
		c.ends[0], c.ends[1] = append(c.ends[0], ca), append(c.ends[1], cb)
	}
	c.nextAt = w.net.Now()
	return c
}

// play runs for a virtual time d, with the load if load is true.
func (c *crowd) play(d time.Duration, load bool) {
	c.t.Helper()
	for end := c.net.Now() + int64(d); c.net.Now() < end; {
		if now := c.net.Now(); load && now >= c.nextAt {
			to := c.ends[0][c.sent*151%crowdSize]
			c.client.post(to, to.PostSend(c.mem[0].seg(0, 64), 0, 0))
			c.sent++
			c.nextAt = now + crowdEvery
		}
		busy := c.poll()
		c.reap()
		switch now := c.net.Now(); {
		case busy:
			c.net.Advance(now + spin)
		case load:
			c.net.Advance(max(now+spin, min(end, c.nextAt, int64(c.next()))))
		default:
			c.net.Advance(max(now+spin, min(end, int64(c.next()))))
		}
	}
}

// reap pops the completions. Each must be a success.
func (c *crowd) reap() {
	var done Completion
	for c.client.request.Pop(&done) {
		if done.Status == StatusSuccess {
			c.done++
		}
	}
	for c.client.connect.Pop(&done) || c.server.connect.Pop(&done) {
	}
	for !c.server.down && c.server.recv.Pop(&done) {
		if cb := c.ends[1][done.Cookie]; cb.State() == Established {
			c.server.postRecv(cb, c.mem[1].seg(0, 64), done.Cookie)
		}
	}
}

func (c *crowd) broken() (n int) {
	for i := range c.ends[0] {
		if c.ends[0][i].State() != Established || c.ends[1][i].State() != Established {
			n++
		}
	}
	return n
}

func (c *crowd) resends() uint64 {
	return c.client.eng.stats.Retransmits + c.server.eng.stats.Retransmits
}

// A server is stopped and continues, as by SIGSTOP and SIGCONT. It must lose no connection and must catch up at once.
// Its client must not send the same data many times.
func TestServerIsStopped(t *testing.T) {
	for _, tc := range []struct {
		stop time.Duration
		most int // largest number of retransmissions on a connection
	}{{time.Second, 12}, {5 * time.Second, 32}} {
		stop := tc.stop
		t.Run(fmt.Sprint(stop), func(t *testing.T) {
			c := newCrowd(t)
			c.play(time.Second, true)
			before := c.resends()
			c.server.down = true
			c.play(stop, true)
			c.server.down = false
			begin := c.net.Now()
			for c.done < c.sent && c.net.Now() < begin+int64(3*time.Second) {
				c.play(time.Millisecond, false)
			}
			recovery := time.Duration(c.net.Now() - begin)
			c.play(3*time.Second, true)
			c.play(100*time.Millisecond, false)
			resends := c.resends() - before
			t.Logf("stop of %v: %d of %d connections broken, %d messages, %d not done, %d resends, %d packets dropped, caught up in %v",
				stop, c.broken(), crowdSize, c.sent, c.sent-c.done, resends, c.server.link.Stats().RxDropped, recovery)
			if c.broken() > 0 || c.done != c.sent {
				t.Errorf("%d connections broken, %d messages of %d not done", c.broken(), c.sent-c.done, c.sent)
			}
			if most := uint64(tc.most * crowdSize); resends > most {
				t.Errorf("%d resends, want %d at most", resends, most)
			}
			for _, conn := range slices.Concat(c.ends[0], c.ends[1]) {
				if d := conn.rtt.PTO(); d > 20*time.Millisecond {
					t.Fatalf("the next loss would wait %v: %+v", d, conn.rtt)
				}
			}
			if recovery > 100*time.Millisecond {
				t.Errorf("caught up after %v", recovery)
			}
		})
	}
}

// An engine is stopped for longer than GiveUp. It must not count that time as silence of its peers, because it has not
// read their packets yet.
func TestStallIsNoSilence(t *testing.T) {
	w := newWorldOf(t, simlink.Config{Delay: 20 * time.Microsecond}, Limits{GiveUp: 30 * time.Second}, 1)
	w.limits.GiveUp = time.Second
	w.addNode(netip.MustParseAddrPort("10.0.0.2:17473"))
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(plain)
	src, dst := b.memory(64), a.memory(64)
	w.net.SetLoss(b.addr, a.addr, 1)
	b.post(cb, cb.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	w.run(10 * time.Millisecond)
	b.down = true
	w.net.SetLoss(b.addr, a.addr, 0)
	w.run(5 * time.Second)
	b.down = false
	w.until("the write", 100*time.Millisecond, func() bool { return b.request.Len() == 1 })
	var c Completion
	if b.request.Pop(&c); c.Status != StatusSuccess || ca.State() != Established || cb.State() != Established {
		t.Errorf("write ended with %v, connections %v and %v", c.Status, ca.State(), cb.State())
	}
}

// A silent peer must get packets at growing intervals, until its connection breaks after GiveUp.
func TestSilentPeerIsAskedLessOften(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 20 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(plain)
	src, dst := a.memory(64), b.memory(64)
	w.run(time.Second)
	w.net.Partition(a.addr, b.addr, true)
	a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	sent, start := a.eng.stats.TxPackets, w.net.Now()
	w.until("the end", 20*time.Second, func() bool { return ca.State() == Closed })
	took, n := time.Duration(w.net.Now()-start), a.eng.stats.TxPackets-sent
	if took < 10*time.Second || took > 11*time.Second {
		t.Errorf("given up after %v", took)
	}
	if most := uint64(10*time.Second/minBackoff) + 16; n > most {
		t.Errorf("%d packets to a silent peer", n)
	}
}

// Attack 22: bursts of packets without a connection must not prolong the timeout of a dead peer or cause Acks to peers.
func TestAttack22BurstsAreNoStall(t *testing.T) {
	s := newSiege(t)
	s.foe.down = true
	s.net.Partition(s.friend.addr, s.victim.addr, true)
	s.victim.post(s.cb, s.cb.PostWrite(s.dst.seg(0, 64), 1, s.src.at(0), 0))
	limit, start := s.victim.host.limits.GiveUp, s.net.Now()
	for s.cb.State() == Established {
		for range maxReceive {
			s.send(&proto.Header{Type: proto.Data, CID: 77, Tag: 77}, nil)
		}
		s.run(suspendTime + 10*time.Millisecond)
		if took := time.Duration(s.net.Now() - start); took > limit+time.Second {
			t.Fatalf("a dead peer is not given up after %v", took)
		}
	}
	if s.victim.eng.suspension.endedAt != 0 {
		t.Error("the engine was taken for stopped")
	}
}

// Attack 22: a peer imitates suspensions: it sends a burst of Acks each time that the engine was idle for suspendTime and
// resumeAckPause is over. The engine must send at most as many Acks as it has received, not one to each peer.
func TestAttack22BurstsAreNotAmplified(t *testing.T) {
	const bursts = 5
	for _, burst := range []int{maxReceive, 100, 2 * crowdSize} {
		c := newCrowd(t)
		cb := c.ends[1][0]
		path := c.ends[0][0].path
		c.play(time.Second, false)
		for i := range bursts {
			before := c.server.eng.stats.TxPackets
			for range burst {
				var b [1]link.Buf
				if c.client.link.Alloc(b[:]) != 1 {
					t.Fatal("no frame")
				}
				raw := packetOf(proto.Header{Type: proto.Ack, CID: cb.cid, Tag: cb.tag, PSN: cb.recv.nextPSN, Ack: cb.sent.Una}, nil)
				b[0].Data, b[0].Path = b[0].Data[:copy(b[0].Data, raw)], path
				c.client.link.Send(b[:])
			}
			c.net.Advance(c.net.Now() + int64(time.Millisecond)) // all of them arrive before the next Poll
			c.play(resumeAckPause+suspendTime, false)
			n := c.server.eng.stats.TxPackets - before
			if n == 0 {
				t.Error("the engine was not taken for suspended: the test tests nothing")
			}
			if n > uint64(min(burst, crowdSize)) {
				t.Errorf("burst %d: %d packets caused %d packets", i, burst, n)
			}
		}
	}
}

// The time in which an engine is stopped must not count as silence of the peers. But a connection to a silent peer must
// break in the end, even if the engine is stopped again and again.
func TestStopsForgiveTheirLength(t *testing.T) {
	w := newWorldOf(t, simlink.Config{Delay: 20 * time.Microsecond}, Limits{GiveUp: 2 * time.Second}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(plain)
	src, dst := a.memory(64), b.memory(64)
	w.net.Partition(a.addr, b.addr, true)
	a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	stopped, start := time.Duration(0), w.net.Now()
	for ca.State() == Established {
		w.exactly(400 * time.Millisecond)
		w.net.Advance(w.net.Now() + int64(800*time.Millisecond)) // the timers are at most 500 ms apart
		stopped += 800 * time.Millisecond
		if took := time.Duration(w.net.Now() - start); took > 3*time.Second+stopped { // a timeout is at most 500 ms late
			t.Fatalf("not given up after %v, of which it was stopped for %v", took, stopped)
		}
	}
	if took := time.Duration(w.net.Now() - start); took < 3*time.Second {
		t.Errorf("given up after %v, of which it was stopped for %v", took, stopped)
	}
}

// suspensions must be bounded in size, and exact for the last 64.
func TestStops(t *testing.T) {
	var s suspensions
	for i := range 200 {
		s.add(Time(10*i+5), 3)
	}
	for _, tc := range []struct {
		since Time
		want  time.Duration
	}{{1995, 0}, {1994, 3}, {1985, 3}, {1984, 6}, {1400, 60 * 3}, {0, 64 * 3}} {
		if got := s.totalAfter(tc.since); got != tc.want {
			t.Errorf("after %d: %d, want %d", tc.since, got, tc.want)
		}
	}
}
