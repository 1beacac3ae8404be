//go:build !race

package wire

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/seal"
)

// defaultSeeds is the number of scenarios that go test runs. make sim runs more.
const defaultSeeds = 1000

// TestScenarios runs random scenarios in virtual time: hosts, connections, work, a bad network, crashes. In each
// scenario:
//   - every message must arrive once, in order and whole,
//   - memory must contain what the writes wrote,
//   - every request must complete once, with the right status,
//   - the beginning and the end of every connection must be reported once,
//   - nothing may be left over.
//
// sim_model_test.go and sim_judge_test.go contain the checks. A seed always generates the same scenario. DATXDP_SEEDS=n
// runs the first n scenarios, or n from scenario DATXDP_FIRST on, and DATXDP_SEED=i runs only scenario i.
func TestScenarios(t *testing.T) {
	first, n := seedRange(t)
	var failed, grouped atomic.Int32
	t.Run("seed", func(t *testing.T) {
		for seed := first; seed < first+n; seed++ {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				defer func() {
					if t.Failed() {
						failed.Add(1)
						fmt.Printf("seed %d failed; again with: DATXDP_SEED=%d go test ./wire -count=1 -run TestScenarios\n", seed, seed)
					}
				}()
				if runScenario(t, seed, nil).grouped() {
					grouped.Add(1)
				}
			})
		}
	})
	fmt.Printf("%d seeds, %d failures\n", n, failed.Load())
	if k := uint64(grouped.Load()); n >= defaultSeeds && k < n/8 {
		t.Errorf("packets arrived in groups in %d of %d scenarios", k, n)
	}
}

// seedRange returns the range of scenarios to run.
func seedRange(t *testing.T) (first, n uint64) {
	number := func(name string) (uint64, bool) {
		v := os.Getenv(name)
		if v == "" {
			return 0, false
		}
		i, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return i, true
	}
	if one, ok := number("DATXDP_SEED"); ok {
		return one, 1
	}
	first, _ = number("DATXDP_FIRST")
	if n, ok := number("DATXDP_SEEDS"); ok {
		return first, n
	}
	return first, defaultSeeds
}

// sim is one running scenario.
type sim struct {
	t        *testing.T
	seed     uint64
	r        *rand.Rand
	sc       scenario
	w        *world
	hosts    []*simHost
	sessions []*session
	ends     []*end
	events   []event // events to come, by time
	history  []string
	steps    int
	idle     int // consecutive steps in which no consumer did anything
	settling bool
}

// Bounds of one scenario. Beyond them it counts as a livelock.
const (
	maxSteps   = 400_000
	maxVirtual = 20 * time.Minute
)

// runScenario runs the scenario of a seed.
func runScenario(t *testing.T, seed uint64, keys *seal.Limits) *sim {
	s := newSim(t, seed, keys)
	defer func() {
		if p := recover(); p != nil {
			s.fail("panic: %v\n%s", p, debug.Stack())
		}
	}()
	for !s.finished() {
		s.step()
	}
	s.settle()
	s.judge()
	s.leftovers()
	return s
}

// grouped reports whether packets arrived in groups.
func (s *sim) grouped() bool {
	return slices.ContainsFunc(s.hosts, func(h *simHost) bool { return h.link.Stats().RxGroups > 0 })
}

func (s *sim) now() int64 { return s.w.net.Now() }

// note records a line for the report of a failure.
func (s *sim) note(format string, args ...any) {
	s.history = append(s.history, fmt.Sprintf("%12v  ", time.Duration(s.now()))+fmt.Sprintf(format, args...))
}

// fail ends the scenario with a message and its description.
func (s *sim) fail(format string, args ...any) {
	s.t.Helper()
	const most = 60
	last := s.history
	if len(last) > most {
		last = append([]string{"..."}, last[len(last)-most:]...)
	}
	s.t.Fatalf("seed %d at %v: %s\n%v\n%s", s.seed, time.Duration(s.now()),
		fmt.Sprintf(format, args...), &s.sc, strings.Join(last, "\n"))
}

// step polls every engine, gives every consumer a turn and advances time.
func (s *sim) step() {
	if s.steps++; s.steps > maxSteps || s.now() > int64(maxVirtual) {
		s.fail("livelock: %d steps\n%s", s.steps, s.unfinished())
	}
	busy := s.w.poll()
	s.happen()
	acted := false
	for _, h := range s.hosts {
		acted = h.turn() || acted
	}
	for _, c := range s.sc.circuits {
		acted = s.redial(c) || acted
	}
	s.watch()
	if acted {
		s.idle = 0
	} else {
		s.idle++
	}
	if busy || acted {
		s.w.net.Advance(s.now() + spin)
		return
	}
	const starved = 50 * spin // limit for an engine that asks to be polled at once because it waits for a frame
	s.w.net.Advance(max(int64(min(s.w.next(), s.look())), s.now()+starved))
}

// look returns when consumers get their next turn if no event comes. The longer no event has come, the later that is.
func (s *sim) look() Time {
	const longest = 20 * time.Millisecond
	at := Time(s.now()).Add(min(s.sc.pace<<min(s.idle/8, 20), longest))
	if len(s.events) > 0 {
		at = min(at, Time(s.events[0].at))
	}
	return at
}

// happen executes the events that are due.
func (s *sim) happen() {
	for len(s.events) > 0 && s.events[0].at <= s.now() {
		e := s.events[0]
		s.events = s.events[1:]
		s.note("%s", e.what)
		e.run(s)
	}
}

// finished reports whether every connection of the scenario has ended and none is to come.
func (s *sim) finished() bool {
	for _, c := range s.sc.circuits {
		if c.rounds > 0 {
			return false
		}
	}
	for _, h := range s.hosts {
		if len(h.live) > 0 {
			return false
		}
	}
	return true
}

// settle ends the connections that consumers have left open, and waits for the last repeats and timers.
func (s *sim) settle() {
	s.events, s.settling = nil, true
	for _, h := range s.hosts {
		h.dozes = 0
	}
	end := s.now() + int64(s.w.limits.GiveUp+3*time.Second)
	for s.now() < end {
		s.step()
	}
}

// leftovers checks that nothing is left in the engines, and that all frames and paths have returned to the links.
func (s *sim) leftovers() {
	for _, h := range s.hosts {
		if h.down {
			continue
		}
		e := h.eng
		e.forgetAllRejected() // rejected requests may be kept, because they are bounded
		left := map[string]int{
			"connections": e.Connections(), "early frames": e.heldFrames, "timers": e.timers.armed(),
			"requests": len(e.requests), "peers": len(e.host.peers.cids), "connections to send": e.sched.ready.conns, "addresses": len(e.sched.addresses),
			"acknowledgements": len(e.acks), "paths": h.link.Paths(),
			"overflows": int(e.stats.Overflows), "undelivered completions": h.undelivered(),
		}
		e.Close()
		left["frames"] = h.link.Outstanding()
		for what, n := range left {
			if n != 0 {
				s.fail("host %d: %d %s left over", h.index, n, what)
			}
		}
	}
}

// unfinished lists the connections that have not ended.
func (s *sim) unfinished() string {
	var b strings.Builder
	for _, h := range s.hosts {
		for _, e := range h.live {
			fmt.Fprintf(&b, "%v: state %d, %d of %d requests settled, %d to come, %d of %d receives filled\n",
				e, e.c.State(), e.settled, len(e.reqs), e.todo, e.recvDone, e.recvPosted)
		}
	}
	return b.String()
}
