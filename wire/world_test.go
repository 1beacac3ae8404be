package wire

import (
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// randReader is a seeded source of bytes.
type randReader struct{ r *rand.Rand }

func (r randReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.r.Uint32())
	}
	return len(b), nil
}

func randSource(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// rough returns a network that loses, duplicates and reorders a tenth of its packets if seed is at least from.
func rough(seed, from uint64) simlink.Config {
	cfg := simlink.Config{Seed: seed, Delay: 5 * time.Microsecond}
	if seed >= from {
		cfg.Loss, cfg.Reorder, cfg.Duplicate = 0.1, 0.1, 0.1
	}
	return cfg
}

// node is one host with one engine in a simulated network. The engine is not polled while down is true.
type node struct {
	t    testing.TB
	down bool
	host *Host
	eng  *Engine
	link *simlink.Link
	addr netip.AddrPort

	recv, request, connect *Queue
	arrived                []*Request
	refuse                 bool
	taken                  int // used bytes of the link's memory
}

func (n *node) Arrive(r *Request) bool {
	if n.refuse {
		return false
	}
	n.arrived = append(n.arrived, r)
	return true
}

func (n *node) completions() CompletionQueues {
	return CompletionQueues{Recv: n.recv, Request: n.request, Connect: n.connect}
}

// world is a simulated network and the nodes on it, in virtual time.
type world struct {
	t      testing.TB
	net    *simlink.Net
	nodes  []*node
	seed   uint64
	made   uint64 // number of hosts made so far
	limits Limits
	keys   *seal.Limits // secure mode, with these limits of the keys; nil: plaintext mode
	noise  *noise       // handshakes in secure mode
	model  *cipherModel
	late   *lateJobs // jobs that run later; nil: jobs run at once
	runner Runner    // replaces late
	keyLog io.Writer // key log of all hosts; nil: none
}

func newWorld(t testing.TB, cfg simlink.Config, nodes int) *world {
	return newWorldOf(t, cfg, Limits{}, nodes)
}

func newWorldOf(t testing.TB, cfg simlink.Config, l Limits, nodes int) *world {
	return newSecureWorld(t, cfg, l, nil, nodes)
}

func newSecureWorld(t testing.TB, cfg simlink.Config, l Limits, keys *seal.Limits, nodes int) *world {
	w := &world{t: t, net: simlink.New(cfg), seed: cfg.Seed, limits: l, keys: keys,
		noise: newNoise(cfg.Seed/2%2 == 1, randReader{randSource(cfg.Seed + 55)})}
	w.noise.model, w.model = newHandshakeModel(t), newCipherModel(t)
	for i := range nodes {
		w.addNode(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 17473))
	}
	return w
}

func (w *world) addNode(addr netip.AddrPort) *node {
	n := w.boot(addr)
	w.nodes = append(w.nodes, n)
	return n
}

// crash stops a node without a packet to its peers. Its memory, frames and secrets are lost.
func (w *world) crash(n *node) {
	n.down = true
	if err := n.link.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// reboot puts a new host at the address of a node that crashed.
func (w *world) reboot(i int) *node {
	w.nodes[i] = w.boot(w.nodes[i].addr)
	return w.nodes[i]
}

// boot makes a host with new secrets, and its engine.
func (w *world) boot(addr netip.AddrPort) *node {
	r := randReader{rand.New(rand.NewPCG(w.seed, w.made))}
	w.made++
	h, err := NewHost(r, w.limits)
	if err != nil {
		w.t.Fatal(err)
	}
	w.secure(h)
	n := &node{t: w.t, host: h, link: w.net.Link(addr), addr: addr}
	if n.eng, err = h.NewEngine(n.link, Time(w.net.Now())); err != nil {
		w.t.Fatal(err)
	}
	fail := func() { w.t.Errorf("seed %d: completion queue overflow", w.seed) }
	n.recv = NewQueue(4096, nil, fail)
	n.request = NewQueue(4096, nil, fail)
	n.connect = NewQueue(256, nil, fail)
	return n
}

// spin is the least time of one poll in nanoseconds.
const spin = 100

// poll polls every engine once and reports whether one of them did anything.
func (w *world) poll() bool {
	busy := w.late.run()
	for _, n := range w.nodes {
		if !n.down {
			busy = n.eng.Poll(Time(w.net.Now())) || busy
		}
	}
	return busy
}

// next returns the time of the next event, or never.
func (w *world) next() Time {
	next := never
	if at, ok := w.net.Next(); ok {
		next = Time(at)
	}
	if w.late.waiting() {
		next = min(next, Time(w.net.Now()).Add(10*time.Microsecond))
	}
	for _, n := range w.nodes {
		if !n.down {
			next = min(next, n.eng.Next())
		}
	}
	return next
}

// step polls every engine once and moves time to the next event. It reports false if there will be no further event.
func (w *world) step() bool { return w.stepUntil(int64(never)) }

// stepUntil is step, but moves time to end at most.
func (w *world) stepUntil(end int64) bool {
	now := w.net.Now()
	if w.poll() {
		w.net.Advance(now + spin)
		return true
	}
	next := w.next()
	if next == never {
		return false
	}
	w.net.Advance(min(max(int64(next), now+spin), end))
	return true
}

// until calls step until cond is true, for at most the virtual time d.
func (w *world) until(what string, d time.Duration, cond func() bool) {
	w.t.Helper()
	for end := w.net.Now() + int64(d); !cond(); {
		if w.net.Now() > end || !w.step() && !cond() {
			w.t.Fatalf("seed %d: %s did not happen within %v", w.seed, what, d)
		}
	}
}

// run calls step for the virtual time d.
func (w *world) run(d time.Duration) {
	end := w.net.Now() + int64(d)
	for steps := 0; w.net.Now() < end; steps++ {
		if !w.stepUntil(end) {
			w.net.Advance(end)
		}
		if steps > 1_000_000 {
			w.t.Fatalf("seed %d: livelock: a million steps and %v left", w.seed, time.Duration(end-w.net.Now()))
		}
	}
}

var plain = ConnConfig{Zone: 1, MaxRecv: 64, MaxRequest: 64, MaxRecvIOV: 4, MaxRequestIOV: 4, ReadIn: 4, ReadOut: 4}

const service = 0x0affab1e0001

// dial starts a connection attempt from a to b, which listens.
func (w *world) dial(a, b *node, c *Conn, private []byte) {
	w.t.Helper()
	w.dialWith(a, b, c, private, w.requester())
}

func (w *world) dialWith(a, b *node, c *Conn, private []byte, r Requester) {
	w.t.Helper()
	path, err := a.link.Resolve(b.addr, 1)
	if err != nil {
		w.t.Fatal(err)
	}
	err = a.eng.Connect(c, Dial{Path: path, Host: b.addr.Addr(), Qual: service, Timeout: 30 * time.Second, Private: private,
		Completions: a.completions(), Requester: r})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) accept(b *node, c *Conn, private []byte) {
	w.t.Helper()
	r := b.arrived[0]
	b.arrived = b.arrived[1:]
	path, err := b.link.Resolve(r.From, 1)
	if err == nil {
		err = b.eng.Accept(r, c, path, private, b.completions())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// pair connects two new connections between nodes 0 and 1.
func (w *world) pair(cfg ConnConfig) (ca, cb *Conn) {
	w.t.Helper()
	a, b := w.nodes[0], w.nodes[1]
	ca, cb = a.host.NewConn(cfg), b.host.NewConn(cfg)
	if b.host.service(service) == nil {
		if err := b.host.Listen(service, b); err != nil {
			w.t.Fatal(err)
		}
	}
	w.dial(a, b, ca, []byte("hello"))
	w.until("connection request", 10*time.Second, func() bool { return len(b.arrived) > 0 })
	w.accept(b, cb, []byte("welcome"))
	w.until("establishment", 10*time.Second, func() bool {
		return ca.State() == Established && cb.State() == Established
	})
	w.want(a.connect, KindEstablished)
	w.want(b.connect, KindEstablished)
	return ca, cb
}

// want pops a connection event from q and checks its kind.
func (w *world) want(q *Queue, k Kind) {
	w.t.Helper()
	var c Completion
	if !q.Pop(&c) || c.Kind != k {
		w.t.Fatalf("seed %d: got completion %+v, want kind %d", w.seed, c, k)
	}
}

// wantBroken checks that the next completion says that a connection broke, for this reason.
func (w *world) wantBroken(q *Queue, why BreakReason) {
	w.t.Helper()
	var c Completion
	if !q.Pop(&c) || c.Kind != KindBroken || BreakReason(c.Data) != why {
		w.t.Fatalf("seed %d: got completion %+v, want a broken connection because %v", w.seed, c, why)
	}
}

// memory is a registered buffer of a node.
type memory struct {
	*Region
	mem []byte
}

// fill writes random bytes.
func (m memory) fill(r *rand.Rand) memory {
	for i := range m.mem {
		m.mem[i] = byte(r.Uint32())
	}
	return m
}

const allRights = LocalRead | LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic

// memory registers link memory while there is enough, otherwise ordinary memory.
func (n *node) memory(size int) memory {
	m := n.link.Caps().Memory[n.taken:]
	if len(m) < size {
		m = make([]byte, size)
	} else {
		m = m[:size:size]
		n.taken += (size + 7) &^ 7 // atomics need aligned words
	}
	r, err := n.host.Register(m, 0x1000_0000, 1, allRights)
	if err != nil {
		n.t.Fatal(err)
	}
	return memory{r, m}
}

func (m memory) seg(off, n int) []Segment {
	return []Segment{{Context: m.local, Address: m.base + uint64(off), Length: uint32(n)}}
}

func (m memory) at(off int) Remote { return Remote{Key: m.remote, Addr: m.base + uint64(off)} }

// post kicks the engine after a post with result err. It reports false if the work queue was full.
func (n *node) post(c *Conn, err error) bool {
	if err == ErrQueueFull {
		return false
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.eng.Kick(c)
	return true
}

func (n *node) postRecv(c *Conn, s []Segment, cookie uint64) bool {
	_, err := c.PostRecv(s, cookie, 0)
	return n.post(c, err)
}
