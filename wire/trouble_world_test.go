//go:build !race

package wire

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// trouble is one running scenario of TestAfterTrouble: a client, a server, and a foe whose packets the test builds.
type trouble struct {
	*world
	r              *rand.Rand
	client, server *node
	foe            *node
	guise          *guise // the server's link, which gives the packets of the foe the source address that they claim
	ca, cb         *Conn
	ma, mb         memory
	menu           []*operation
	op             *operation    // the operation that is outstanding; nil: none
	final          time.Duration // delay of the path after the trouble
	reused         bool          // the flood's requests are accepted
	wake           map[*node]bool
	landed         map[*node]uint64 // packets that have reached the node
	stopped        map[*node]int    // number of faults that stop the node
	byLink         map[*simlink.Link]*node
	later, faults  []*mishap // faults of the scenario, and those that are to come, by time
	planned        string
	steps          int
}

type troubleFailure struct{ error }

const (
	troubleSteps = 4_000_000 // of one scenario; beyond them it counts as a livelock
	largestOp    = 1 << 18   // bytes
)

func newTrouble(t *testing.T, seed uint64, keys *seal.Limits) *trouble {
	r := rand.New(rand.NewPCG(seed, 37))
	cfg := simlink.Config{Seed: seed, Unchecked: true, MTU: pick(r, 1472, 1472, 4052, 8972),
		Frames: pick(r, 128, 512, 1024), Delay: between(r, 2*time.Microsecond, time.Millisecond)}
	cfg.FrameSize = cfg.MTU
	if chance(r, 3) {
		cfg.Rate = pick(r, int64(1e9), 10e9)
	}
	w := newSecureWorld(t, cfg, Limits{}, keys, 2)
	x := &trouble{world: w, r: r, client: w.nodes[0], server: w.nodes[1],
		wake: map[*node]bool{}, landed: map[*node]uint64{}, stopped: map[*node]int{}, byLink: map[*simlink.Link]*node{}}
	x.foe = w.addNode(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, 1}), 17473))
	x.disguise()
	for _, n := range w.nodes {
		x.byLink[n.link] = n
	}
	x.ma, x.mb = x.client.memory(largestOp), x.server.memory(largestOp)
	x.drawMenu()
	x.drawTrouble(&cfg)
	if err := x.server.host.Listen(service, x.server); err != nil {
		t.Fatal(err)
	}
	return x
}

// disguise replaces the server's engine by one whose link gives the foe's packets other source addresses.
func (x *trouble) disguise() {
	x.guise = &guise{Link: x.server.link, foe: x.foe.addr}
	h, err := NewHost(randReader{randSource(x.seed + 77)}, x.limits)
	if err != nil {
		x.t.Fatal(err)
	}
	x.secure(h)
	x.server.host = h
	if x.server.eng, err = h.NewEngine(x.guise, Time(x.now())); err != nil {
		x.t.Fatal(err)
	}
}

func (x *trouble) now() int64 { return x.net.Now() }

// fail ends the scenario.
func (x *trouble) fail(format string, args ...any) {
	s := fmt.Sprintf("seed %d at %v: %s\n%s", x.seed, time.Duration(x.now()), fmt.Sprintf(format, args...), x.planned)
	for i, c := range []*Conn{x.ca, x.cb} {
		if c != nil {
			s += fmt.Sprintf("end %d: state %d, srtt %v, PTO %v, timeouts %d, outstanding %d, lost %d, window %.3f, size %d, epoch changing %v, unanswered %d, timer at %v, stalled %v, rnr %v, try at %v, heard at %v\n",
				i, c.State(), c.rtt.Smoothed(), c.rtt.PTO(), c.rtx.count, c.sent.Nxt.Sub(c.sent.Una), c.sent.Lost(), c.cc.Window(), c.pmtu.Size,
				c.epoch.changing, c.unanswered, time.Duration(c.timerAt), time.Duration(c.flow.stalledSince), c.flow.rnr.waiting, time.Duration(c.dial.nextTry), time.Duration(c.lastHeard))
		}
	}
	panic(troubleFailure{errors.New(s)})
}

// runUntil runs the scenario until cond is true, which must happen by the time end.
func (x *trouble) runUntil(what string, end int64, cond func() bool) {
	began := x.now()
	for !cond() {
		if x.now() > end {
			x.fail("%s did not complete within %v", what, time.Duration(end-began))
		}
		x.advance(end + 1)
	}
}

// rest runs the scenario for a time.
func (x *trouble) rest(d time.Duration) {
	for end := x.now() + int64(d); x.now() < end; {
		x.advance(end)
	}
}

// advance polls the engines that have a reason for it, and moves time to the next event, at most to the time most.
func (x *trouble) advance(most int64) {
	if x.steps++; x.steps > troubleSteps {
		x.fail("livelock: %d steps", x.steps)
	}
	x.happen()
	polled := false
	next := most
	for _, n := range x.nodes[:2] {
		if x.stopped[n] > 0 {
			continue
		}
		if x.wake[n] || int64(n.eng.Next()) <= x.now() {
			n.eng.Poll(Time(x.now()))
			st := n.link.Stats()
			x.wake[n] = x.landed[n] > st.RxPackets+st.RxDropped // a Poll receives a bounded number of packets
			polled = true
		}
		next = min(next, int64(n.eng.Next()))
	}
	if polled {
		x.consume()
	}
	if x.wake[x.client] && x.stopped[x.client] == 0 || x.wake[x.server] && x.stopped[x.server] == 0 {
		next = x.now()
	}
	for _, f := range x.faults {
		next = min(next, f.at)
	}
	next = min(max(next, x.now()+spin), most)
	for {
		at, ok := x.net.Next()
		if !ok || at > next {
			break
		}
		if l := x.net.Step(); l != nil {
			if n := x.byLink[l]; n == x.foe {
				x.drainFoe()
			} else {
				x.wake[n] = true
				x.landed[n]++
				next = min(next, max(x.now(), 0))
			}
		}
	}
	x.net.Advance(max(next, x.now()))
}

// consume handles the completions of both ends.
func (x *trouble) consume() {
	x.takeRequests()
	var c Completion
	for _, n := range x.nodes[:2] {
		for n.connect.Pop(&c) {
			if (c.Conn == x.ca || c.Conn == x.cb) && c.Kind != KindEstablished {
				x.fail("the connection ended: %+v", c)
			}
		}
	}
	for x.server.recv.Pop(&c) {
		if c.Conn == x.cb {
			x.mustSucceed(&c)
			x.answer()
		}
	}
	for x.client.recv.Pop(&c) {
		if c.Conn == x.ca {
			x.mustSucceed(&c)
			x.postRecv(x.client, x.ca, x.ma)
			x.op = nil
		}
	}
	for x.client.request.Pop(&c) {
		if c.Conn == x.ca {
			x.mustSucceed(&c)
			if c.Op == OpRead {
				x.op = nil
			}
		}
	}
	for x.server.request.Pop(&c) {
		if c.Conn == x.cb {
			x.mustSucceed(&c)
		}
	}
}

func (x *trouble) mustSucceed(c *Completion) {
	if c.Status != StatusSuccess {
		x.fail("a request ended with status %d: %+v", c.Status, c)
	}
}

// kick tells an engine of posts, as a consumer does: it polls only if the engine asks for it.
func (x *trouble) kick(n *node, c *Conn, err error) {
	if err != nil {
		x.fail("posting: %v", err)
	}
	if poll, _ := n.eng.Kick(c); poll {
		x.wake[n] = true
	}
}

func (x *trouble) postRecv(n *node, c *Conn, m memory) {
	_, err := c.PostRecv(m.seg(0, largestOp), 0, 0)
	x.kick(n, c, err)
}

// takeRequests accepts the client's request, and what the flood has made.
func (x *trouble) takeRequests() {
	all := x.server.arrived
	x.server.arrived = nil
	for _, r := range all {
		mine := r.From == x.client.addr
		if !mine && !x.reused {
			continue // the service never decides
		}
		cfg := ConnConfig{Zone: 1, MaxRecv: 2, MaxRequest: 2, MaxRecvIOV: 1, MaxRequestIOV: 1}
		if mine {
			cfg = plain
		}
		c := x.server.host.NewConn(cfg)
		if mine {
			for range 8 {
				if _, err := c.PostRecv(x.mb.seg(0, largestOp), 0, 0); err != nil {
					x.fail("posting: %v", err)
				}
			}
			x.cb = c
		}
		path, err := x.server.link.Resolve(r.From, 1)
		if err == nil {
			err = x.server.eng.Accept(r, c, path, nil, x.server.completions())
		}
		if err != nil && mine {
			x.fail("accepting: %v", err)
		}
		x.wake[x.server] = true
	}
}

// connected reports whether both ends are established.
func (x *trouble) connected() bool {
	return x.ca.State() == Established && x.cb != nil && x.cb.State() == Established
}

// dialServer begins a connection from the client to the server.
func (x *trouble) dialServer() {
	x.cb = nil
	x.ca = x.client.host.NewConn(plain)
	for range 8 {
		if _, err := x.ca.PostRecv(x.ma.seg(0, largestOp), 0, 0); err != nil {
			x.fail("posting: %v", err)
		}
	}
	x.dial(x.client, x.server, x.ca, nil)
	x.wake[x.client] = true
}

// calibrate measures how long each operation of the menu takes on an idle network, on a connection of its own.
func (x *trouble) calibrate() {
	x.dialServer()
	x.runUntil("the first connection", x.now()+int64(10*time.Second), x.connected)
	for range 2 {
		for _, op := range x.menu {
			began := x.now()
			x.begin(op)
			x.runUntil("an operation without trouble", began+int64(10*time.Second), func() bool { return x.op == nil })
			op.unloaded = max(op.unloaded, time.Duration(x.now()-began))
		}
	}
	for _, e := range []struct {
		n *node
		c *Conn
	}{{x.client, x.ca}, {x.server, x.cb}} {
		if err := e.n.eng.Disconnect(e.c, false); err != nil {
			x.fail("%v", err)
		}
		x.wake[e.n] = true
	}
	x.ca, x.cb = nil, nil
	x.rest(20 * time.Millisecond)
}

// operation is a kind of operation. A read is an RDMA read of answer bytes. Otherwise the client sends a request, and the
// server answers with a message or a write with immediate data.
type operation struct {
	read, write     bool
	request, answer int
	unloaded        time.Duration // time that it takes on an idle network
}

func (o *operation) String() string {
	return fmt.Sprintf("read %v, write %v, %d bytes, answer of %d bytes, unloaded %v", o.read, o.write, o.request, o.answer, o.unloaded)
}

func (x *trouble) drawMenu() {
	sizes := []int{64, 64, 500, 2400, 9000, 30_000}
	for i := range 4 {
		o := &operation{write: chance(x.r, 3), request: sizes[x.r.IntN(4)], answer: sizes[x.r.IntN(len(sizes))]}
		if i == 3 && chance(x.r, 2) { // bulk
			o.read, o.answer = chance(x.r, 3), 1<<(16+x.r.IntN(3))
			if chance(x.r, 3) {
				o.request, o.answer = o.answer, 64
			}
		}
		x.menu = append(x.menu, o)
	}
}

func (x *trouble) drawOp() *operation { return x.menu[x.r.IntN(len(x.menu))] }

// begin begins an operation.
func (x *trouble) begin(o *operation) {
	x.op = o
	if o.read {
		x.kick(x.client, x.ca, x.ca.PostRead(x.ma.seg(0, o.answer), 0, x.mb.at(0), uint32(o.answer), 0))
		return
	}
	x.kick(x.client, x.ca, x.ca.PostSend(x.ma.seg(0, o.request), 0, 0))
}

// answer makes the server answer the request.
func (x *trouble) answer() {
	x.postRecv(x.server, x.cb, x.mb)
	if o := x.op; o.write {
		x.kick(x.server, x.cb, x.cb.PostWriteImm(x.mb.seg(0, o.answer), 0, x.ma.at(0), 0, 0))
	} else {
		x.kick(x.server, x.cb, x.cb.PostSend(x.mb.seg(0, o.answer), 0, 0))
	}
}
