//go:build !race

package wire

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// pool contains random bytes that all scenarios send and read. It never changes.
var pool = func() []byte {
	r, b := rand.New(rand.NewPCG(1, 2)), make([]byte, 1<<17)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}()

// simHost is a host and its consumer. After a crash the host gets a new node.
type simHost struct {
	*node
	s       *sim
	index   int
	source  memory // the pool as registered memory
	live    []*end
	asked   []asked // requests not answered yet
	dozes   int64   // time until which the consumer does nothing
	dozed   bool    // dozes was set once
	cuts    [8]int  // number of network cuts between this host and each other host
	severed [8]int  // those of the cuts that may break a connection
	wasCut  [8]bool
}

// asked is a request and the time at which the consumer answers it.
type asked struct {
	r  *Request
	m  manner
	at int64
}

// simService is a service that handles all its requests in the same manner.
type simService struct {
	h *simHost
	n *node
	m manner
}

// Arrive implements Service.
func (v simService) Arrive(r *Request) bool {
	h := v.h
	if h.node != v.n {
		h.s.fail("a request reached host %d after its crash", h.index)
	}
	if v.m == refuses {
		return false
	}
	s := h.s.sessionOf(r.Private)
	if string(r.Private) != string(s.private) || r.Qual != s.plan.manner.qual() || r.Port != uint64(s.id) ||
		r.From != s.active.n.addr {
		h.s.fail("request %+v differs from the attempt %v", r, s)
	}
	h.asked = append(h.asked, asked{r, v.m, h.s.now() + int64(s.plan.think)})
	return true
}

// boot makes n the node of the host.
func (h *simHost) boot(n *node) {
	h.node = n
	if h.s.sc.merged {
		n.request, n.connect = n.recv, n.recv
	}
	region, err := n.host.Register(pool, 0x5000, 1, LocalRead|RemoteRead)
	if err != nil {
		h.s.fail("registering: %v", err)
	}
	h.source = memory{region, pool}
	for m := range absent {
		if err := n.host.Listen(m.qual(), simService{h, n, m}); err != nil {
			h.s.fail("listening: %v", err)
		}
	}
}

// crash stops the host. Completions from before the crash still count.
func (h *simHost) crash() {
	h.drain()
	h.s.w.crash(h.node)
	for _, s := range h.s.sessions { // also if our end has ended, because the other end may not know yet
		if s.circuit.host[0] == h.index || s.circuit.host[1] == h.index {
			s.harmed(s.unheard(), false)
		}
	}
	for _, e := range h.live {
		e.dead = true
		e.forlorn()
	}
	h.live, h.asked = nil, nil
}

// turn makes the consumer check everything once. It reports whether the consumer did anything.
func (h *simHost) turn() (acted bool) {
	if h.down || h.dozes > h.s.now() {
		return false
	}
	acted = h.drain()
	for i := 0; i < len(h.asked); i++ {
		if a := h.asked[i]; (a.m != ignores && a.at <= h.s.now()) || h.s.settling {
			h.asked = append(h.asked[:i], h.asked[i+1:]...)
			i--
			h.answer(a)
			acted = true
		}
	}
	keep := h.live[:0]
	for _, e := range h.live {
		acted = e.act() || acted
		if !e.over {
			keep = append(keep, e)
		}
	}
	h.live = keep
	return h.drain() || acted
}

// drain pops all completions.
func (h *simHost) drain() (any bool) {
	var c Completion
	for _, q := range []*Queue{h.recv, h.request, h.connect} {
		for q.Pop(&c) {
			any = true
			e := c.Conn.User.(*end)
			switch {
			case c.Kind != KindWork:
				e.event(c.Kind)
			case c.Op == OpRecv || c.Op == OpRecvImm:
				e.tookRecv(&c)
			default:
				e.tookRequest(&c)
			}
		}
	}
	return any
}

func (h *simHost) undelivered() int { return h.recv.Len() + h.request.Len() + h.connect.Len() }

// answer accepts or rejects a request. At the end of the scenario it only removes the request.
func (h *simHost) answer(a asked) {
	s := h.s.sessionOf(a.r.Private)
	path, err := h.link.Resolve(a.r.From, uint16(s.id))
	if err != nil {
		h.s.fail("resolving: %v", err)
	}
	if h.s.settling {
		if err := h.eng.Refuse(a.r, path); err != nil && err != ErrGone {
			h.s.fail("refusing: %v", err)
		}
		return
	}
	if a.m == rejects {
		if err := h.eng.Reject(a.r, path, s.private); err != nil && err != ErrGone {
			h.s.fail("rejecting: %v", err)
		}
		return
	}
	e := s.newEnd(h, 1, len(s.passives))
	s.passives = append(s.passives, e)
	if chance(h.s.r, 2) {
		e.postReceives()
	}
	var private [8]byte
	binary.BigEndian.PutUint64(private[:], uint64(e.index))
	switch err = h.eng.Accept(a.r, e.c, path, append(private[:], s.private...), h.completions()); err {
	case nil:
		h.s.note("%v accepts", e)
		e.deadline = h.s.now() + int64(h.s.sc.limits.GiveUp+time.Second)
	case ErrGone:
		e.over, e.void = true, true
		return
	default:
		h.s.fail("accepting: %v", err)
	}
	h.live = append(h.live, e)
}

// session is one connection attempt and the connection that results from it.
type session struct {
	sim      *sim
	id       int
	circuit  *circuit
	plan     plan
	private  []byte
	dialled  int64
	active   *end
	passives []*end // an end for each time that the request was accepted

	trouble  bool // an event of the network or a host may have broken the connection
	shaken   bool // more packets may have been lost than repeats make up for
	severed  bool // the hosts are separated for ever
	evil     bool // a request was posted that must fail
	starved  bool // a message may have waited too long for a receive
	hungUp   bool // a consumer disconnected
	gaveUp   bool // an accepted request was not confirmed
	timedOut bool
}

func (s *session) String() string {
	return fmt.Sprintf("connection %d from host %d to host %d", s.id, s.circuit.host[0], s.circuit.host[1])
}

// sessionOf returns the session that private data names.
func (s *sim) sessionOf(private []byte) *session {
	if len(private) < 8 || binary.BigEndian.Uint64(private) >= uint64(len(s.sessions)) {
		s.fail("private data %x is nobody's", private)
	}
	return s.sessions[binary.BigEndian.Uint64(private)]
}

// redial begins the next connection of a circuit if the last one is over.
func (s *sim) redial(c *circuit) bool {
	from, to := s.hosts[c.host[0]], s.hosts[c.host[1]]
	if c.rounds == 0 || s.now() < c.next || c.last != nil && !c.last.active.over && !c.last.active.dead {
		return false
	}
	if from.down && !s.willReturn() {
		c.rounds = 0
		return false
	}
	if from.down || from.dozes > s.now() {
		return false
	}
	c.rounds--
	c.next = s.now() + int64(between(s.r, time.Microsecond, 10*time.Millisecond))
	x := &session{sim: s, id: len(s.sessions), circuit: c, plan: s.drawPlan(), dialled: s.now()}
	x.private = binary.BigEndian.AppendUint64(nil, uint64(x.id))
	x.private = append(x.private, pool[:s.r.IntN(490)]...)
	s.sessions = append(s.sessions, x)
	c.last = x
	x.trouble = to.down || from.severed[c.host[1]] > 0
	x.shaken = x.trouble || from.cuts[c.host[1]] > 0
	x.active = x.newEnd(from, 0, 0)
	if chance(s.r, 2) {
		x.active.postReceives()
	}
	s.note("%v: connects, %+v", x, x.plan)
	path, err := from.link.Resolve(to.addr, uint16(x.id))
	if err == nil {
		err = from.eng.Connect(x.active.c, Dial{Path: path, Host: to.addr.Addr(), Qual: x.plan.manner.qual(), Port: uint64(x.id),
			Timeout: x.plan.timeout, Private: x.private, Completions: from.completions(), Requester: s.w.requester()})
	}
	if err != nil {
		s.fail("connecting: %v", err)
	}
	x.active.deadline = s.now() + int64(x.plan.timeout+time.Second)
	from.live = append(from.live, x.active)
	return true
}

// willReturn reports whether another event will happen.
func (s *sim) willReturn() bool { return len(s.events) > 0 }

// newEnd makes one end of a session. It reuses the Conn of the circuit's last session if that is free.
func (s *session) newEnd(h *simHost, side, index int) *end {
	c := s.circuit
	e := &end{s: s, sim: s.sim, h: h, n: h.node, side: side, index: index, id: len(s.sim.ends),
		cfg: c.cfg[side], todo: s.plan.ops[side], evilAt: s.plan.evil[side]}
	s.sim.ends = append(s.sim.ends, e)
	e.peer = s.active // nil for the active end, which learns its peer from private data
	if old := c.conn[side]; old != nil && c.owner[side] == h.node && (old.State() == Closed || old.State() == Idle) &&
		old.User.(*end).over {
		if err := h.eng.Reset(old); err != nil {
			s.sim.fail("resetting: %v", err)
		}
		h.drain()
		e.c = old
	} else {
		e.c = h.host.NewConn(e.cfg)
		c.conn[side], c.owner[side] = e.c, h.node
	}
	e.c.User = e
	e.prepare()
	return e
}

// unheard reports whether any end has not ended.
func (s *session) unheard() bool {
	for _, e := range append(s.passives, s.active) {
		if !e.over {
			return true
		}
	}
	return false
}

// harm records how an event affects the connections between two hosts.
func (s *sim) harm(a, b int, fatal, forEver bool) {
	for _, x := range s.sessions {
		if h := x.circuit.host; h == [2]int{a, b} || h == [2]int{b, a} {
			x.harmed(fatal, forEver)
		}
	}
}

func (s *session) harmed(fatal, forEver bool) {
	s.shaken = true
	s.trouble = s.trouble || fatal
	s.severed = s.severed || forEver
	if forEver {
		for _, e := range append(s.passives, s.active) {
			e.mustEnd()
		}
	}
}
