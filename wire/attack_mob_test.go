//go:build !race

package wire

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/fairqueue"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// mob consists of many foes of a hoard, each with a connection.
type mob struct {
	*hoard
	foes   []*node
	held   map[netip.AddrPort]*Conn
	since  map[*Conn]Time
	finish bool
	rate   int // bytes of a message that each foe sends in a second; 0: one byte in each step
	outage int // every how many messages of the friend the path fails, 0 for never
	ended  int // connections of foes that ended
	mine   int // messages of the friend that have arrived
}

func newMob(h *hoard, n int, addr func(i int) netip.Addr) *mob {
	c := &mob{hoard: h, held: map[netip.AddrPort]*Conn{}, since: map[*Conn]Time{}}
	for i := range n {
		c.join(addr(i))
	}
	return c
}

// join adds a foe with the given address.
func (c *mob) join(addr netip.Addr) {
	c.foes = append(c.foes, c.addNode(netip.AddrPortFrom(addr, 17473)))
	c.step()
}

// check makes the friend send 20 messages while the foes continue their attack. No message may wait longer than 1 s for
// its receive, and the friend's connection must survive.
func (c *mob) check(t *testing.T) {
	var longest time.Duration
	for i := range 20 {
		longest = max(longest, c.message(c.outage > 0 && i%c.outage == c.outage-1))
	}
	t.Logf("longest wait %v; %d connections of foes ended", longest, c.ended)
	if longest > time.Second || c.fa.State() != Established || c.fb.State() != Established {
		t.Errorf("the friend waited for %v, its connection is %v and %v", longest, c.fa.State(), c.fb.State())
	}
	c.p.checkFlows(t, c.conns())
}

func (c *mob) conns() []*Conn {
	all := []*Conn{c.fb}
	for _, x := range c.held {
		all = append(all, x)
	}
	return all
}

// begin is hoard.begin while connections of other foes end.
func (c *mob) begin() *Conn {
	cfg := plain
	cf := c.foe.host.NewConn(cfg)
	cfg.SRQ, cfg.Notice = c.p.SharedQueue, func(Notice) {}
	cv := c.victim.host.NewConn(cfg)
	c.foe.down = false
	c.dial(c.foe, c.victim, cf, nil)
	c.until("a foe's request", time.Second, func() bool { return len(c.victim.arrived) > 0 })
	c.accept(c.victim, cv, nil)
	c.until("a foe's connection", time.Second, func() bool { return cf.State() == Established && cv.State() == Established })
	c.run(5 * time.Millisecond)
	c.foe.down = true
	c.drain()
	hd := c.header(cv, proto.Data)
	c.strike(&hd, sendChunk(0, 8, 0, 0))
	return cv
}

// step makes each foe continue its message, or connect and begin one.
func (c *mob) step() {
	for i, n := range c.foes {
		c.from(n)
		x := c.held[n.addr]
		if x != nil && x.State() != Established { // a new connection
			c.crash(n)
			n = c.reboot(slices.Index(c.world.nodes, n))
			c.foes[i] = n
			c.from(n)
			x = nil
		}
		if x == nil {
			x = c.begin()
			c.held[n.addr], c.since[x] = x, Time(c.net.Now())
			continue
		}
		hd := c.header(x, proto.Data)
		if !x.srq.flow.Holds() {
			c.since[x] = Time(c.net.Now())
			c.strike(&hd, sendChunk(0, 8, x.recv.msn, 0))
		} else if c.finish && Time(c.net.Now()).Sub(c.since[x]) > fairqueue.ProgressTimeout*8/10 {
			c.strike(&hd, sendChunk(proto.Last, 1, x.recv.msn, x.recv.off))
		} else if c.rate > 0 {
			c.trickle(x)
		} else {
			c.strike(&hd, sendChunk(0, 1, x.recv.msn, x.recv.off))
		}
	}
	c.restock()
}

// run is world.run, but it does not run on to the next event after the time d.
func (c *mob) run(d time.Duration) {
	for end := c.net.Now() + int64(d); c.net.Now() < end; {
		if c.poll() {
			c.net.Advance(c.net.Now() + spin)
		} else {
			c.net.Advance(min(max(int64(c.next()), c.net.Now()+spin), end))
		}
	}
}

// trickle makes a foe continue its message at c.rate. If the message fills the receive, the foe completes it.
func (c *mob) trickle(x *Conn) {
	hd, off, flags := c.header(x, proto.Data), x.recv.off, proto.ChunkFlags(0)
	for end := c.rate * int(Time(c.net.Now()).Sub(c.since[x])/time.Millisecond) / 1000; flags == 0 && int(off) < end; {
		n := min(1400, c.p.size-int(off))
		if int(off)+n == c.p.size {
			flags = proto.Last
		}
		c.send(&hd, sendChunk(flags, n, x.recv.msn, off))
		hd.PSN++
		off += uint32(n)
	}
	c.land()
}

// restock posts the completed receives again, and pops the events of foes that ended.
func (c *mob) restock() {
	var x Completion
	for c.victim.recv.Pop(&x) {
		if x.Conn == c.fb {
			if x.Status != StatusSuccess {
				c.t.Fatalf("the friend's message: %+v", x)
			}
			c.mine++
		}
		c.p.add(int(x.Cookie))
	}
	for c.victim.connect.Pop(&x) {
		switch {
		case x.Kind == KindEstablished:
		case x.Conn == c.fb || x.Kind != KindBroken || BreakReason(x.Data) != BreakUnfinished:
			c.t.Fatalf("%+v, of the friend: %v", x, x.Conn == c.fb)
		default:
			c.ended++
		}
	}
	for _, n := range c.foes {
		for n.connect.Pop(&x) {
		}
	}
}

// The method message makes the friend send one message. If outage is true, the path fails for 500 ms in the middle of
// the message. The result is how long the message waited for its receive.
func (c *mob) message(outage bool) time.Duration {
	c.t.Helper()
	c.friend.post(c.fa, c.fa.PostSend(c.src.seg(0, hoardSize), 0, Suppress))
	start := c.net.Now()
	waited, left := time.Duration(0), 50 // remaining steps of the outage
	for c.mine = 0; c.mine == 0; {
		if took := time.Duration(c.net.Now() - start); took > 20*time.Second {
			c.t.Fatalf("the friend's message has not arrived: waits %v, %d wait, %d available", c.fb.srq.flow.Waits(), c.p.fair.Waiting(), c.p.fair.Free())
		}
		if n, _ := c.fb.Receiving(); n > 0 && outage && left > 0 {
			c.net.Partition(c.friend.addr, c.victim.addr, true)
			if left--; left == 0 {
				c.net.Partition(c.friend.addr, c.victim.addr, false)
			}
		} else if n == 0 {
			waited = time.Duration(c.net.Now() - start)
		}
		c.step()
		c.run(time.Duration(10) * time.Millisecond)
		c.restock()
	}
	c.friend.request.Pop(new(Completion))
	return waited
}
