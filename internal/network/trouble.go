package network

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire"
)

// The moment after trouble: one conversation, into which faults come. When both ends run and the path is whole again,
// the exchange that was outstanding has to complete within troubleOutstanding, and each later one within three times
// the time that it takes without faults, and troubleLater.

const (
	troubleOutstanding = 250 * time.Millisecond
	troubleLater       = 10 * time.Millisecond
	troubleStories     = 25                     // faults for each seed
	troubleLongest     = 3 * time.Second        // of a fault; a peer may be silent for ten seconds
	troubleGap         = 300 * time.Millisecond // longest pause of the client
	troubleBefore      = 6                      // exchanges before the first fault
	troubleAfter       = 20                     // exchanges after the last one
)

// fault brings trouble for a time, and takes it away. It may leave a network with another round trip.
type fault struct {
	name string
	run  func(s *story, d time.Duration)
}

var faults = []fault{
	{"stop", func(s *story, d time.Duration) { s.ends[s.rng.IntN(2)].stop(d); s.world.run(d) }},
	{"black-hole", func(s *story, d time.Duration) { s.lose(1, d) }},
	{"loss", func(s *story, d time.Duration) { s.lose(0.1+0.8*s.rng.Float64(), d) }},
	{"flap", func(s *story, d time.Duration) {
		addr := s.ends[s.rng.IntN(2)].link.Local()
		s.world.net.SetDown(addr, true)
		s.world.run(d)
		s.world.net.SetDown(addr, false)
	}},
	{"reroute", func(s *story, d time.Duration) {
		s.rtt = roundTrip(s.rng)
		s.world.setRTT(s.ends[0], s.ends[1], s.rtt)
		s.world.run(d)
	}},
	{"mtu", func(s *story, d time.Duration) {
		a, b := s.ends[0].link.Local(), s.ends[1].link.Local()
		s.world.net.SetMTU(a, b, 1200)
		s.world.net.SetMTU(b, a, 1200)
		s.world.run(d)
		s.world.net.SetMTU(a, b, math.MaxInt)
		s.world.net.SetMTU(b, a, math.MaxInt)
	}},
	{"flood", func(s *story, d time.Duration) { s.flood(min(d, 300*time.Millisecond)) }},
}

func troubleCases() (all []Case) {
	for i, f := range faults {
		all = append(all, Case{Name: "trouble/" + f.name, Worst: true, Run: func(seed uint64) []Metric { return trouble(faults[i:i+1], seed) }})
	}
	return append(all, Case{Name: "trouble/all", Worst: true, Run: func(seed uint64) []Metric { return trouble(faults, seed) }})
}

// trouble tells some stories and returns the worst times.
func trouble(of []fault, seed uint64) []Metric {
	var outstanding, later time.Duration
	failures, broken := 0, 0
	for i := range uint64(troubleStories) {
		s := tell(of, seed*troubleStories+i)
		outstanding, later = max(outstanding, s.outstanding), max(later, s.later)
		if s.outstanding > troubleOutstanding || s.later > troubleLater || s.broken {
			failures++
		}
		if s.broken {
			broken++
		}
	}
	return []Metric{{"outstanding ms", float64(outstanding) / 1e6}, {"later ms", float64(later) / 1e6},
		{"failures %", 100 * float64(failures) / troubleStories}, {"broken", float64(broken)}}
}

// story is one conversation with its faults.
type story struct {
	world  *World
	rng    *rand.Rand
	talk   *talk
	ends   [2]*host
	nextAt int64 // when the client asks again; its pauses are random
	rtt    time.Duration
	plot   []string

	outstanding time.Duration // from the end of the trouble until the exchange that was outstanding was complete
	later       time.Duration // longest time of a later exchange beyond three times its time without faults
	broken      bool
}

// roundTrip draws a round trip between 8 µs and 10 ms.
func roundTrip(r *rand.Rand) time.Duration {
	return time.Duration(8e3 * math.Pow(1250, r.Float64()))
}

// tell tells the story of a seed, with one to three faults.
func tell(of []fault, seed uint64) *story {
	s := newStory(seed)
	s.exchange(troubleBefore)
	for range 1 + s.rng.IntN(3) {
		f := of[s.rng.IntN(len(of))]
		d := time.Duration(float64(time.Microsecond) * 10 * math.Pow(float64(troubleLongest/(10*time.Microsecond)), s.rng.Float64()))
		s.plot = append(s.plot, fmt.Sprintf("%s %v", f.name, d))
		if s.rng.IntN(2) == 0 { // in the middle of an exchange
			s.world.within(troubleGap, func() bool { return !s.talk.idle })
			s.world.run(time.Duration(s.rng.Int64N(int64(2 * s.rtt))))
		}
		f.run(s, d)
	}
	s.judge()
	return s
}

func newStory(seed uint64) *story {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &story{rng: r, rtt: roundTrip(r)}
	n := Net{Rate: 25e9, RTT: s.rtt, MTU: payload1500, Port: shallow, Hosts: make([]simlink.Host, 3)}
	if r.IntN(4) == 0 {
		n.MTU = payload9000
	}
	w := newWorld(n, seed)
	w.mayBreak = true
	s.world, s.ends = w, [2]*host{w.hosts[0], w.hosts[1]}
	s.talk = w.converse(w.hosts[0], w.hosts[1])
	s.talk.sizes = [2]int{1 + r.IntN(2000), 1 << (6 + r.IntN(10))}
	w.all[0] = &teller{host: w.hosts[0], story: s}
	s.plan()
	return s
}

// plan draws the next pause of the client: short ones, and few that are longer than all timers.
func (s *story) plan() {
	s.nextAt = s.world.now() + int64(float64(time.Microsecond)*math.Pow(float64(troubleGap/time.Microsecond), s.rng.Float64()))
}

// teller is the client's host. It asks when the time has come.
type teller struct {
	*host
	story *story
}

func (t *teller) turn(now int64) (next int64, packets int) {
	s := t.story
	done := s.talk.finished
	next, packets = t.host.turn(now)
	if now < t.stopped {
		return next, packets
	}
	if s.talk.finished > done {
		s.plan()
	}
	if !s.talk.idle {
		return next, packets
	}
	if now >= s.nextAt {
		s.talk.ask(now)
		return now, packets
	}
	return min(next, s.nextAt), packets
}

// exchange runs until n further exchanges are complete. It returns the longest, and reports false if they do not end.
func (s *story) exchange(n int) (longest time.Duration, ok bool) {
	s.world.wake(0, s.world.now())
	for range n {
		want := s.talk.finished + 1
		if !s.world.within(20*time.Second, func() bool { return s.talk.finished >= want || s.over() }) || s.over() {
			return longest, false
		}
		longest = max(longest, s.talk.took)
	}
	return longest, true
}

func (s *story) over() bool { return s.ends[0].broken || s.ends[1].broken }

// judge measures the time after the trouble.
func (s *story) judge() {
	end := s.world.now()
	if !s.talk.idle {
		_, ok := s.exchange(1)
		s.outstanding = time.Duration(s.world.now() - end)
		s.broken = !ok
	}
	if s.broken {
		return
	}
	longest, ok := s.exchange(troubleAfter)
	s.broken = !ok
	s.later = max(longest-3*s.unloaded(), 0)
}

// unloaded returns how long an exchange takes in the same network without faults.
func (s *story) unloaded() time.Duration {
	twin := newWorld(Net{Rate: 25e9, RTT: s.rtt, MTU: s.ends[0].link.Caps().MaxPayload, Port: shallow, Hosts: make([]simlink.Host, 2)}, 1)
	t := twin.converse(twin.hosts[0], twin.hosts[1])
	t.sizes = s.talk.sizes
	var took []float64
	for range troubleBefore {
		t.ask(twin.now())
		twin.until("an exchange", time.Minute, func() bool { return t.idle })
		took = append(took, float64(t.took))
		twin.run(time.Millisecond)
	}
	return time.Duration(median(took))
}

// lose makes the path lose packets, in one direction or in both.
func (s *story) lose(p float64, d time.Duration) {
	a, b := s.ends[0].link.Local(), s.ends[1].link.Local()
	ways := 1 + s.rng.IntN(3)
	set := func(p float64) {
		if ways&1 != 0 {
			s.world.net.SetLoss(a, b, p)
		}
		if ways&2 != 0 {
			s.world.net.SetLoss(b, a, p)
		}
	}
	set(p)
	s.world.run(d)
	set(0)
}

// stranger is the user of connections that are not part of a story.
const stranger = "stranger"

// flood makes a third host try to connect to the server, again and again, where nobody listens.
func (s *story) flood(d time.Duration) {
	const attempts = 256
	from, to := s.world.hosts[2], s.ends[1]
	for i := range attempts {
		c := from.host.NewConn(from.config(0))
		c.User = stranger
		path, err := from.link.Resolve(to.link.Local(), uint16(i))
		must(err)
		must(from.engine.Connect(c, wire.Dial{Path: path, Host: to.link.Local().Addr(), Qual: 1 << 40, Timeout: d, Completions: from.queues()}))
	}
	s.world.wake(from.number, s.world.now())
	s.world.run(d)
}
