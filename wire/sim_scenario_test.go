//go:build !race

package wire

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// blackHoles adds events in which a path begins to drop large packets.
const blackHoles = true

// scenario is what one seed generates.
type scenario struct {
	net      simlink.Config
	limits   Limits
	hosts    int
	merged   bool          // one queue for all completions of a host
	pace     time.Duration // time between two turns of a consumer
	maxOp    int           // size of the largest operation in bytes
	circuits []*circuit
	planned  string // description of the events
}

func (sc *scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "network %+v\nlimits %+v, %d hosts, merged queues %v, pace %v, operations up to %d bytes\n",
		sc.net, sc.limits, sc.hosts, sc.merged, sc.pace, sc.maxOp)
	for i, c := range sc.circuits {
		fmt.Fprintf(&b, "circuit %d: host %d to host %d, %+v, %+v\n", i, c.host[0], c.host[1], c.cfg[0], c.cfg[1])
	}
	return b.String() + sc.planned
}

// circuit is a pair of hosts. Connections between them begin one after the other.
type circuit struct {
	host   [2]int // active, passive
	cfg    [2]ConnConfig
	conn   [2]*Conn // Conns of the last connection
	owner  [2]*node // nodes of the Conns
	rounds int      // number of connections to come
	last   *session
	next   int64 // earliest time of the next connection
}

// manner says what a service does with requests.
type manner int

const (
	accepts manner = iota
	rejects
	refuses
	ignores
	absent
	manners
)

func (m manner) qual() uint64 { return service + uint64(m) }

func (m manner) String() string {
	return [...]string{"accepts", "rejects", "refuses", "ignores", "is absent"}[m]
}

// plan says what the consumers of one connection will do. Index 0 is the active side.
type plan struct {
	manner  manner
	timeout time.Duration
	think   time.Duration // time until the passive side answers
	ops     [2]int
	evil    [2]int // index of the request that the peer must refuse; -1: none
	leaves  [2]bool
	polite  [2]bool // disconnects gracefully
	hasty   bool    // disconnects after its own requests are posted, not after all work is done
	hold    time.Duration
	cancel  time.Duration // time after which the active side cancels; 0: never
	late    int           // number of requests posted after the end
}

// event is something that happens to the network or to a host.
type event struct {
	at   int64
	what string
	run  func(*sim)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// between returns a random duration with an evenly distributed logarithm.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	d := low
	for d < high && r.IntN(4) != 0 {
		d += d / 2
	}
	return min(d+time.Duration(r.Int64N(int64(d/2+1))), high)
}

func chance(r *rand.Rand, one int) bool { return r.IntN(one) == 0 }

// newSim generates the scenario of a seed and builds its world.
func newSim(t *testing.T, seed uint64, keys *seal.Limits) *sim {
	r := rand.New(rand.NewPCG(seed, 99))
	s := &sim{t: t, seed: seed, r: r}
	s.sc = drawScenario(r, seed)
	if n := &s.sc.net.RxFrameSize; keys != nil && *n > 0 {
		*n = max(*n, minPacket) // every handshake packet must fit into a frame
	}
	s.w = newSecureWorld(t, s.sc.net, Limits{}, keys, 0)
	s.w.limits = s.sc.limits
	if keys != nil && seed/4%2 == 1 {
		s.w.late = newLateJobs(seed)
	}
	for i := range s.sc.hosts {
		n := s.w.addNode(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 17473))
		s.hosts = append(s.hosts, &simHost{s: s, index: i})
		s.hosts[i].boot(n)
	}
	s.drawEvents()
	return s
}

func drawScenario(r *rand.Rand, seed uint64) scenario {
	sc := scenario{net: drawNet(r, seed), hosts: 2 + r.IntN(4), merged: chance(r, 3)}
	sc.limits = pick(r,
		Limits{GiveUp: 500 * time.Millisecond, NotReady: time.Second, KeepAlive: time.Second},
		Limits{GiveUp: time.Second, NotReady: 2 * time.Second, KeepAlive: 3 * time.Second},
		Limits{GiveUp: 2 * time.Second, NotReady: 3 * time.Second, KeepAlive: 10 * time.Second})
	if chance(r, 16) {
		sc.limits = Limits{}
	}
	sc.limits.setDefaults()
	sc.pace = between(r, time.Microsecond, time.Millisecond)
	sc.maxOp = pick(r, 100, 4000, 8000, 8000, 40000)
	for range 1 + r.IntN(6) {
		c := &circuit{rounds: 1 + r.IntN(3), host: [2]int{r.IntN(sc.hosts), r.IntN(sc.hosts)}}
		if c.host[0] == c.host[1] && !chance(r, 3) {
			c.host[1] = (c.host[0] + 1) % sc.hosts
		}
		c.cfg = [2]ConnConfig{drawConn(r), drawConn(r)}
		sc.circuits = append(sc.circuits, c)
	}
	return sc
}

func drawNet(r *rand.Rand, seed uint64) simlink.Config {
	cfg := simlink.Config{Seed: seed, Delay: between(r, time.Microsecond, time.Millisecond),
		MTU: pick(r, 1472, 1472, 1452, basePacket, 3000), Frames: pick(r, 64, 256, 512)}
	if chance(r, 16) {
		cfg.Delay = 10 * time.Millisecond
	}
	cfg.FrameSize = cfg.MTU
	if chance(r, 3) {
		cfg.MTU, cfg.FrameSize, cfg.RxFrameSize, cfg.Frames = 9000, 2048, 600+r.IntN(1400), 512
		if chance(r, 2) {
			cfg.Memory, cfg.FrameSize, cfg.Segments = 1<<20, 1024, 18
		}
	}
	if !chance(r, 4) {
		cfg.Loss, cfg.Duplicate = r.Float64()*0.1, r.Float64()*0.05
		cfg.Reorder, cfg.Corrupt = r.Float64()*0.1, r.Float64()*0.02
	}
	if chance(r, 3) {
		segments := (cfg.MTU + 599) / 600
		cfg.Rate = pick(r, int64(5e7), 1e9, 1e10)
		cfg.QueueFrames = 4*segments + r.IntN(256)
		if chance(r, 2) {
			cfg.MarkFrames = 1 + r.IntN(cfg.QueueFrames)
		}
	}
	drawGroups(&cfg)
	return cfg
}

// drawGroups makes half of the networks whose packets have one frame move groups of packets. It has random numbers of its
// own, so the other networks are those that their seeds had before there were groups.
func drawGroups(cfg *simlink.Config) {
	r := rand.New(rand.NewPCG(cfg.Seed, 98))
	if cfg.MTU > cfg.FrameSize || chance(r, 2) {
		return
	}
	cfg.Group = pick(r, 2*cfg.MTU, 12_000, 65_000)
	cfg.Blocks = pick(r, 1, 4, 16)
	cfg.RxWindow = pick(r, 0, 20, 32, 100)
}

func drawConn(r *rand.Rand) ConnConfig {
	return ConnConfig{Zone: 1, MaxRecv: 1 + r.IntN(64), MaxRequest: 1 + r.IntN(64),
		MaxRecvIOV: 1 + r.IntN(4), MaxRequestIOV: 1 + r.IntN(4), ReadIn: r.IntN(8), ReadOut: r.IntN(8)}
}

// drawPlan generates the plan of the next connection of a circuit.
func (s *sim) drawPlan() plan {
	r := s.r
	p := plan{timeout: 6 * time.Second, evil: [2]int{-1, -1}, hasty: chance(r, 3), late: r.IntN(3)}
	if chance(r, 6) {
		p.manner = manner(1 + r.IntN(int(manners)-1))
	}
	if p.manner == ignores || chance(r, 12) {
		p.timeout = between(r, 100*time.Microsecond, time.Second)
	}
	if chance(r, 4) {
		p.think = between(r, time.Millisecond, 200*time.Millisecond)
	}
	if chance(r, 12) {
		p.cancel = between(r, time.Microsecond, 100*time.Millisecond)
	}
	if chance(r, 8) {
		p.hold = time.Duration(r.Int64N(int64(2 * (s.sc.limits.KeepAlive + s.sc.limits.GiveUp))))
	}
	most := pick(r, 1, 10, 60, 150, 400)
	for side := range 2 {
		p.ops[side] = r.IntN(most + 1)
		p.leaves[side], p.polite[side] = chance(r, 2), chance(r, 2)
		if p.ops[side] > 0 && chance(r, 24) {
			p.evil[side] = r.IntN(p.ops[side])
		}
	}
	if !p.leaves[0] && !p.leaves[1] {
		p.leaves[r.IntN(2)] = true
	}
	return p
}

// drawEvents generates the events of the network and the hosts.
func (s *sim) drawEvents() {
	r := s.r
	kinds := []func(at int64) event{s.drawCut, s.drawStorm, s.drawDoze, s.drawCrash}
	if blackHoles {
		kinds = append(kinds, s.drawHole)
	}
	for range pick(r, 0, 0, 1, 1, 2, 4) {
		at := between(r, 100*time.Microsecond, time.Second)
		s.plan(kinds[r.IntN(len(kinds))](int64(at)))
	}
}

// plan adds an event.
func (s *sim) plan(e event) {
	if e.run == nil {
		return
	}
	i, _ := slices.BinarySearchFunc(s.events, e.at, func(e event, at int64) int { return cmp.Compare(e.at, at+1) })
	s.events = slices.Insert(s.events, i, e)
	s.sc.planned += fmt.Sprintf("event at %v: %s\n", time.Duration(e.at), e.what)
}

// twoHosts returns two different random hosts.
func (s *sim) twoHosts() (a, b int) {
	a = s.r.IntN(s.sc.hosts)
	return a, (a + 1 + s.r.IntN(s.sc.hosts-1)) % s.sc.hosts
}

// drawCut returns an event that separates two hosts, for a time or for ever.
func (s *sim) drawCut(at int64) event {
	a, b := s.twoHosts()
	give := s.sc.limits.GiveUp
	d := pick(s.r, between(s.r, time.Millisecond, give/4), between(s.r, give/2, 3*give), time.Duration(never))
	what := fmt.Sprintf("hosts %d and %d cut for %v", a, b, d)
	if d == time.Duration(never) {
		what = fmt.Sprintf("hosts %d and %d cut for ever", a, b)
	}
	return event{at, what, func(s *sim) { s.cut(a, b, d) }}
}

func (s *sim) cut(a, b int, d time.Duration) {
	x, y := s.hosts[a], s.hosts[b]
	again := x.wasCut[b]
	x.wasCut[b], y.wasCut[a] = true, true
	x.cuts[b]++
	y.cuts[a]++
	s.w.net.Partition(x.addr, y.addr, true)
	fatal := again || d > s.sc.limits.GiveUp/3
	if fatal {
		x.severed[b]++
		y.severed[a]++
	}
	s.harm(a, b, fatal, d == time.Duration(never))
	if d == time.Duration(never) {
		return
	}
	s.plan(event{s.now() + int64(d), fmt.Sprintf("hosts %d and %d joined", a, b), func(s *sim) {
		if fatal {
			x.severed[b]--
			y.severed[a]--
		}
		x.cuts[b]--
		y.cuts[a]--
		s.w.net.Partition(x.addr, y.addr, x.cuts[b] > 0)
	}})
}

// drawStorm returns an event with heavy loss from one host to another, for a time.
func (s *sim) drawStorm(at int64) event {
	a, b := s.twoHosts()
	p, d := 0.2+0.6*s.r.Float64(), between(s.r, 100*time.Microsecond, s.sc.limits.GiveUp/4)
	return event{at, fmt.Sprintf("host %d to host %d loses %.2f for %v", a, b, p, d), func(s *sim) {
		x, y := s.hosts[a].addr, s.hosts[b].addr
		s.w.net.SetLoss(x, y, p)
		s.harm(a, b, false, false)
		s.plan(event{s.now() + int64(d), fmt.Sprintf("host %d to host %d is well again", a, b),
			func(s *sim) { s.w.net.SetLoss(x, y, s.sc.net.Loss) }})
	}}
}

// drawDoze returns an event after which the consumer of a host does nothing for a time.
func (s *sim) drawDoze(at int64) event {
	h, d := s.r.IntN(s.sc.hosts), between(s.r, 100*time.Microsecond, 100*time.Millisecond)
	if chance(s.r, 4) {
		d = s.sc.limits.NotReady + between(s.r, time.Millisecond, time.Second)
	}
	return event{at, fmt.Sprintf("host %d dozes for %v", h, d), func(s *sim) {
		s.hosts[h].dozed = true
		s.hosts[h].dozes = max(s.hosts[h].dozes, s.now()+int64(d))
	}}
}

// drawCrash returns an event that crashes a host. A new host may take its address later.
func (s *sim) drawCrash(at int64) event {
	h, d := s.r.IntN(s.sc.hosts), between(s.r, time.Microsecond, 5*time.Second)
	back := !chance(s.r, 3)
	return event{at, fmt.Sprintf("host %d crashes", h), func(s *sim) {
		if s.hosts[h].down {
			return
		}
		s.hosts[h].crash()
		if back {
			s.plan(event{s.now() + int64(d), fmt.Sprintf("host %d is back", h), func(s *sim) {
				s.hosts[h].boot(s.w.reboot(h))
			}})
		}
	}}
}

// drawHole returns an event after which a path in one direction drops packets beyond a size.
func (s *sim) drawHole(at int64) event {
	if s.sc.net.MTU <= 1300 {
		return event{}
	}
	a, b := s.twoHosts()
	size := 1200 + s.r.IntN(s.sc.net.MTU-1200)
	return event{at, fmt.Sprintf("host %d to host %d swallows packets beyond %d bytes", a, b, size), func(s *sim) {
		s.w.net.SetMTU(s.hosts[a].addr, s.hosts[b].addr, size)
	}}
}
