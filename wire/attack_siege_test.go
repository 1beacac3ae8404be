package wire

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/rtt"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// The tests named TestAttack try what strangers and hostile peers can do to a host. Those that use eachMode run in both
// modes. In each test a
// bystander, which is an ordinary connection of the same engine, must work before, during and after the attack. At the
// end, nothing may be left in the engine.
//
// Malformed frames (attack 24) and false descriptors (attack 25) do not reach this package. The tests of bpf and xdp
// cover them.

// siegeFrames is the number of frames of a link. It is smaller than the number of packets in a window
// (proto.MaxWindow). So early packets use up the frames before they fill the window.
const siegeFrames = 256

// siege has a victim, a friend with the bystander's connection to the victim, and a foe whose packets the test builds.
type siege struct {
	*world
	victim, friend, foe *node
	ca, cb              *Conn // the bystander's connection: the friend's end and the victim's end
	src, dst            memory
	round               uint64
	in, out             traffic // packets from the foe, and packets to the foe
	guise               *guise
	path                link.Path
	raw                 [9216]byte // the packet being built
}

// traffic counts packets.
type traffic struct {
	packets, bytes    int
	smallest, largest int
	types             [16]int
	last              []byte // the last packet
}

func (c *traffic) add(b []byte) {
	if c.packets == 0 || len(b) < c.smallest {
		c.smallest = len(b)
	}
	c.packets++
	c.bytes += len(b)
	c.largest = max(c.largest, len(b))
	c.types[b[0]&0xf]++
	c.last = append(c.last[:0], b...)
}

// guise is the victim's link. It gives the foe's packets the source address that the test chooses.
type guise struct {
	link.Link
	foe netip.AddrPort
	as  func() netip.AddrPort // returns the source address; nil: the foe's own address
	// While tapped is set, heard records the packets to the victim, except the foe's, and said those from the victim.
	tapped      bool
	heard, said [][]byte
}

func (g *guise) Recv(b []link.Buf) int {
	n := g.Link.Recv(b)
	for i := range b[:n] {
		if g.tapped && g.Link.Source(&b[i]) != g.foe {
			g.heard = append(g.heard, bytes.Clone(b[i].Data))
		}
	}
	return n
}

func (g *guise) Send(b []link.Buf) {
	for i := range b {
		if g.tapped {
			g.said = append(g.said, bytes.Clone(b[i].Data))
		}
	}
	g.Link.Send(b)
}

func (g *guise) Source(b *link.Buf) netip.AddrPort {
	if from := g.Link.Source(b); g.as == nil || from != g.foe {
		return from
	}
	return g.as()
}

func newSiege(t testing.TB) *siege {
	return newSiegeOn(t, simlink.Config{Frames: siegeFrames, Delay: time.Microsecond, Seed: 1})
}

// siegeLimits are short, for tests that wait until a connection to a silent peer breaks.
var siegeLimits = Limits{GiveUp: 2 * time.Second}

func newSiegeOn(t testing.TB, cfg simlink.Config) *siege {
	return newSiegeIn(t, cfg, netip.AddrFrom4([4]byte{10}))
}

// newSiegeIn makes a siege whose hosts have addresses of the given network.
func newSiegeIn(t testing.TB, cfg simlink.Config, network netip.Addr) *siege {
	t.Helper()
	return newSiegeOf(t, cfg, network, nil)
}

// newSiegeOf makes a siege with hosts in secure mode, unless keys is nil.
func newSiegeOf(t testing.TB, cfg simlink.Config, network netip.Addr, keys *seal.Limits) *siege {
	t.Helper()
	host := func(i byte) netip.AddrPort {
		b := network.AsSlice()
		b[len(b)-1] = i
		a, _ := netip.AddrFromSlice(b)
		return netip.AddrPortFrom(a, 17473)
	}
	w := newSecureWorld(t, cfg, siegeLimits, keys, 0)
	s := &siege{world: w, friend: w.addNode(host(1))}
	at := host(2)
	s.victim = w.boot(at)
	s.guise = &guise{Link: s.victim.link}
	w.nodes = append(w.nodes, s.victim)
	h, err := NewHost(randReader{randSource(cfg.Seed + 77)}, w.limits)
	if err != nil {
		t.Fatal(err)
	}
	w.secure(h)
	s.victim.host = h
	if s.victim.eng, err = h.NewEngine(s.guise, Time(w.net.Now())); err != nil {
		t.Fatal(err)
	}
	s.foe = w.addNode(host(3))
	s.guise.foe = s.foe.addr
	if s.path, err = s.foe.link.Resolve(at, 0); err != nil {
		t.Fatal(err)
	}
	s.ca, s.cb = s.pair(plain)
	s.src, s.dst = s.friend.memory(4096), s.victim.memory(4096)
	s.work()
	s.run(50 * time.Millisecond) // time for the search for the path MTU
	return s
}

// The method join connects the foe to the victim and stops the foe's engine. From then on the test builds the foe's
// packets. The method returns the victim's end of the connection and the foe's end.
func (s *siege) join(cfg ConnConfig) (cv, cf *Conn) {
	s.t.Helper()
	cv, cf = s.victim.host.NewConn(cfg), s.foe.host.NewConn(cfg)
	s.foe.down = false
	s.dial(s.foe, s.victim, cf, nil)
	s.until("the foe's request", 3*time.Second, func() bool { return len(s.victim.arrived) > 0 })
	s.accept(s.victim, cv, nil)
	s.until("the foe's connection", time.Second, func() bool {
		return cf.State() == Established && cv.State() == Established
	})
	s.run(50 * time.Millisecond)
	s.want(s.victim.connect, KindEstablished)
	s.want(s.foe.connect, KindEstablished)
	s.foe.down = true
	s.drain()
	s.in, s.out = traffic{}, traffic{}
	return cv, cf
}

// joinMany is join for n connections. It returns the victim's ends.
func (s *siege) joinMany(n int, cfg ConnConfig) (conns []*Conn) {
	s.t.Helper()
	s.foe.down = false
	for range n {
		cv, cf := s.victim.host.NewConn(cfg), s.foe.host.NewConn(cfg)
		s.dial(s.foe, s.victim, cf, nil)
		s.until("the foe's request", 3*time.Second, func() bool { return len(s.victim.arrived) > 0 })
		s.accept(s.victim, cv, nil)
		s.until("the foe's connection", time.Second, func() bool {
			return cf.State() == Established && cv.State() == Established
		})
		s.want(s.victim.connect, KindEstablished)
		s.want(s.foe.connect, KindEstablished)
		conns = append(conns, cv)
	}
	s.run(100 * time.Millisecond)
	s.foe.down = true
	s.drain()
	s.in, s.out = traffic{}, traffic{}
	return conns
}

// header returns a valid header of a packet from the foe to the victim's end cv.
func (s *siege) header(cv *Conn, t proto.Type) proto.Header {
	now := Time(s.net.Now())
	return proto.Header{Type: t, CID: cv.cid, PSN: cv.recv.nextPSN, Ack: cv.sent.Una,
		Credit: cv.flow.creditLimit, TS: now.Stamp(), Tag: cv.tag}
}

// send sends a packet of the foe, sealed if it belongs to a connection of the foe in secure mode.
func (s *siege) send(h *proto.Header, body []byte) {
	if cf := s.foeEnd(h.CID); cf != nil && h.Type.Sealed() {
		s.sendRaw(s.sealed(cf.keys, h, body))
		return
	}
	raw := &s.raw
	h.Put(raw[:])
	n := proto.HeaderSize + copy(raw[proto.HeaderSize:], body)
	proto.PutTrailer(raw[n:], proto.CRC(0, raw[:n]))
	s.sendRaw(raw[:n+proto.TrailerSize])
}

func (s *siege) sendRaw(raw []byte) {
	var b [1]link.Buf
	if s.foe.link.Alloc(b[:]) != 1 {
		s.t.Fatal("the foe has no frame")
	}
	b[0].Data, b[0].Path = b[0].Data[:copy(b[0].Data, raw)], s.path
	s.in.add(raw)
	s.foe.link.Send(b[:])
}

// strike sends a packet of the foe and makes the victim receive and answer it.
func (s *siege) strike(h *proto.Header, body []byte) {
	s.send(h, body)
	s.land()
}

// land delivers the packets in the network, polls the victim, and delivers its answers.
func (s *siege) land() {
	s.net.Advance(s.net.Now() + 2*int64(time.Microsecond))
	s.victim.eng.Poll(Time(s.net.Now()))
	s.net.Advance(s.net.Now() + 2*int64(time.Microsecond))
	s.drain()
}

// drain counts the packets that have arrived at the foe.
func (s *siege) drain() {
	var b [64]link.Buf
	for n := s.foe.link.Recv(b[:]); n > 0; n = s.foe.link.Recv(b[:]) {
		for i := range b[:n] {
			s.out.add(b[i].Data)
		}
		s.foe.link.Free(b[:n])
	}
}

// work makes the bystander write and send, and checks that both arrive whole, once and soon.
func (s *siege) work() {
	s.t.Helper()
	s.round++
	for i := range s.src.mem {
		s.src.mem[i] = byte(s.round*31 + uint64(i))
	}
	a, b := s.friend, s.victim
	b.postRecv(s.cb, s.dst.seg(2048, 2048), s.round)
	a.post(s.ca, s.ca.PostWrite(s.src.seg(0, 2048), 0, s.dst.at(0), 0))
	a.post(s.ca, s.ca.PostSend(s.src.seg(2048, 2048), 0, 0))
	s.until("the bystander's work", 100*time.Millisecond, func() bool { return a.request.Len() == 2 && b.recv.Len() == 1 })
	var c Completion
	for a.request.Pop(&c) {
		if c.Status != StatusSuccess {
			s.t.Fatalf("bystander's request: %+v", c)
		}
	}
	if b.recv.Pop(&c); c.Cookie != s.round || c.Length != 2048 || c.Status != StatusSuccess {
		s.t.Fatalf("bystander's message: %+v", c)
	}
	if !bytes.Equal(s.src.mem, s.dst.mem) {
		s.t.Fatal("the bystander's data are not what was sent")
	}
}

// gauges counts everything in an engine that a packet could fill, except rejected requests, which are bounded.
type gauges struct {
	conns, requests, sources, opening, peers, held, ready, senders, acks, paths int
}

func (s *siege) gauges() gauges {
	e := s.victim.eng
	e.forgetAllRejected()
	return gauges{e.Connections(), len(e.distinctRequests()), len(e.halfOpen.held), e.halfOpen.used, len(e.host.peers.cids), e.heldFrames,
		e.sched.ready.conns, len(e.sched.addresses), len(e.acks), s.victim.link.Paths()}
}

// standing is the state of a connection that a packet would change if the connection accepted it.
type standing struct {
	state                         State
	una, nxt, credit, next, msn   seq.Num
	heard                         Time
	newest, peer                  uint32
	challenged                    bool
	mtu, nheld, requests, recv    int
	window                        float64
	rtt                           rtt.Estimator
	met, stepping, putOff, hungry bool
	cookie                        uint64
}

func standingOf(c *Conn) standing {
	return standing{state: c.State(), una: c.sent.Una, nxt: c.sent.Nxt, credit: c.flow.creditLimit,
		next: c.recv.nextPSN, msn: c.recv.msn, heard: c.lastHeard, newest: c.recv.newestTS, challenged: c.challenge.pending,
		peer: c.peerCID, mtu: c.pmtu.Size, nheld: c.recv.early.Packets(), window: c.cc.Window(), rtt: c.rtt, met: c.peerKnown,
		stepping: c.epoch.changing, putOff: c.flow.rnr.waiting, hungry: c.lowCredit.Load(), cookie: c.dial.cookie,
		requests: int(c.sq.postedCount.Load() - c.sq.doneCount.Load()), recv: int(c.rq.postedCount.Load() - c.rq.doneCount.Load())}
}

// unmoved checks that an attack changes neither connections nor the gauges of the engine.
func (s *siege) unmoved(what string, attack func(), conns ...*Conn) {
	s.t.Helper()
	var before []standing
	for _, c := range conns {
		before = append(before, standingOf(c))
	}
	was := s.gauges()
	attack()
	for i, c := range conns {
		if got := standingOf(c); got != before[i] {
			s.t.Errorf("%s: the connection was\n%+v, now it is\n%+v", what, before[i], got)
		}
	}
	if now := s.gauges(); now != was {
		s.t.Errorf("%s: the engine had %+v, now it has %+v", what, was, now)
	}
}

// noGain checks that the victim has sent the foe no more packets and bytes than it has received from it.
func (s *siege) noGain() {
	s.t.Helper()
	if s.out.packets > s.in.packets || s.out.bytes > s.in.bytes {
		s.t.Errorf("%d packets, %d bytes were answered by %d packets, %d bytes",
			s.in.packets, s.in.bytes, s.out.packets, s.out.bytes)
	}
}

// broken checks that the foe's connection has ended, that both ends were told so, and that no other one has ended.
func (s *siege) broken(cv *Conn, why proto.Reason) {
	s.t.Helper()
	if cv.State() != Closed {
		s.t.Fatalf("the foe's connection is in state %d, want Closed", cv.State())
	}
	s.want(s.victim.connect, KindBroken)
	var g proto.Goodbye
	if b := s.goodbye(); len(b) != proto.GoodbyeSize || !g.Parse(b) || g.Reason != why {
		s.t.Errorf("the foe was told % x, want Close with reason %d", s.out.last, why)
	}
	if s.cb.State() != Established || s.victim.connect.Len() != 0 {
		s.t.Errorf("the bystander's connection is in state %d, %d events", s.cb.State(), s.victim.connect.Len())
	}
}

// finish lets the bystander work once more, ends its connection, and checks that nothing is left in the victim.
func (s *siege) finish() {
	s.t.Helper()
	s.work()
	if err := s.friend.eng.Disconnect(s.ca, true); err != nil {
		s.t.Fatal(err)
	}
	s.foe.down = true
	s.run(20 * time.Second)
	if s.cb.State() != Closed || s.ca.State() != Closed {
		s.t.Errorf("the bystander's connection is in states %d and %d, want Closed", s.ca.State(), s.cb.State())
	}
	if got := s.gauges(); got != (gauges{}) {
		s.t.Errorf("left over: %+v", got)
	}
	if n := s.victim.eng.timers.armed(); n != 0 {
		s.t.Errorf("%d timers left", n)
	}
	s.victim.eng.Close()
	if n := s.victim.link.Outstanding(); n != 0 {
		s.t.Errorf("%d frames not returned", n)
	}
}

// drop ends the foe's connection if the attack has not ended it.
func (s *siege) drop(cv *Conn) {
	s.t.Helper()
	if err := s.victim.eng.Disconnect(cv, false); err != nil {
		s.t.Fatal(err)
	}
	s.want(s.victim.connect, KindDisconnected)
}

// anyAddr returns a random address and port.
func anyAddr(r *rand.Rand) netip.AddrPort {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], r.Uint32())
	return netip.AddrPortFrom(netip.AddrFrom4(a), uint16(r.Uint32()))
}
