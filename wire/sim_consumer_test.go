//go:build !race

package wire

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// pool is random bytes that all scenarios send and read. It is never changed.
var pool = func() []byte {
	r, b := rand.New(rand.NewPCG(1, 2)), make([]byte, 1<<17)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}()

// simHost is a host and its consumer. The node changes when the host crashes and comes back.
type simHost struct {
	*node
	s       *sim
	index   int
	source  memory // the pool
	live    []*end
	asked   []asked // requests not answered yet
	dozes   int64   // the consumer sleeps until then
	dozed   bool    // has slept ever
	cuts    [8]int  // by host: how many cuts separate us
	severed [8]int  // those of them that a connection need not survive
	wasCut  [8]bool
}

// asked is a request that the consumer will look at when it is time.
type asked struct {
	r  *Request
	m  manner
	at int64
}

// simService is a service that treats all its requests in one manner.
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

// crash takes the host away. What its consumer had been told by then counts.
func (h *simHost) crash() {
	h.drain()
	h.s.w.crash(h.node)
	for _, s := range h.s.sessions { // also where our end is over: the other may not have heard yet
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

// turn is one look of the consumer at everything. It reports whether it did anything.
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

// drain takes all completions out.
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

// answer accepts or rejects a request; when all is over it only gets it off the table.
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

// session is one attempt to connect and the connection that comes of it.
type session struct {
	sim      *sim
	id       int
	circuit  *circuit
	plan     plan
	private  []byte
	dialled  int64
	active   *end
	passives []*end // one for each time the request was accepted

	trouble  bool // what happened to network and hosts may have broken it
	shaken   bool // packets were lost more often than repeats make up for
	severed  bool // the hosts will not hear of each other again
	evil     bool // a request that must fail was posted
	starved  bool // a message waited too long for a receive
	hungUp   bool // a consumer ended it
	gaveUp   bool // an accepted end was not taken up
	timedOut bool
}

func (s *session) String() string {
	return fmt.Sprintf("connection %d from host %d to host %d", s.id, s.circuit.host[0], s.circuit.host[1])
}

// sessionOf finds the attempt that private data names.
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
			Timeout: x.plan.timeout, Private: x.private, Completions: from.completions()})
	}
	if err != nil {
		s.fail("connecting: %v", err)
	}
	x.active.deadline = s.now() + int64(x.plan.timeout+time.Second)
	from.live = append(from.live, x.active)
	return true
}

// willReturn reports whether an event is to come.
func (s *sim) willReturn() bool { return len(s.events) > 0 }

// newEnd makes one end of a session, on the connection of the circuit's last session if that is free.
func (s *session) newEnd(h *simHost, side, index int) *end {
	c := s.circuit
	e := &end{s: s, sim: s.sim, h: h, n: h.node, side: side, index: index, id: len(s.sim.ends),
		cfg: c.cfg[side], todo: s.plan.ops[side], evilAt: s.plan.evil[side]}
	s.sim.ends = append(s.sim.ends, e)
	e.peer = s.active // nil for the active end itself, which learns it from the private data
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

// unheard reports whether some end is not over.
func (s *session) unheard() bool {
	for _, e := range append(s.passives, s.active) {
		if !e.over {
			return true
		}
	}
	return false
}

// harm notes what an event did to the connections between two hosts.
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
