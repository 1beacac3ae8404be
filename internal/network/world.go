package network

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// World is a network and the machines in it.
type World struct {
	net    *simlink.Net
	rng    *rand.Rand
	hosts  []*host // by number; nil for machines of another kind
	all    []machine
	number map[*simlink.Link]int
	busy   []int64 // until when a machine is at work, by number
	alarms alarms
	flows  int    // made so far
	memory []byte // registered memory of all hosts; nobody looks at its content

	mayBreak bool    // connections may end
	portRate float64 // of the switch, in bits per second
}

// machine is what is driven at one link of a world: an engine with its application, or a sender of another protocol.
type machine interface {
	// turn does all work that is due, and returns the time of the next turn if no packet arrives, and the number of
	// packets that it has received and sent.
	turn(now int64) (next int64, packets int)
}

// Net describes the network of a world.
type Net struct {
	Rate  int64         // of all links in bits per second
	RTT   time.Duration // of the empty network, between any two hosts
	MTU   int           // largest UDP payload in bytes
	Loss  float64
	Port  simlink.Switch // the switch; without Buffer the ports are deep
	Hold  simlink.Hold
	Hosts []simlink.Host
	// Frames is the number of frames of each link in each direction, half of which may hold early packets; 0 means
	// hostFrames.
	Frames int
}

// hostFrames: a link over AF_XDP holds 1024 early frames.
const hostFrames = 2048

// maxMachines is the largest number of machines in a world.
const maxMachines = 256

// deepBuffer is the buffer of a port that drops nothing.
const deepBuffer = 64 << 20

// newWorld makes a world with one machine for each element of n.Hosts. The machines are engines, except those that
// other makes.
func newWorld(n Net, seed uint64) *World {
	if n.Port.Buffer == 0 && n.Port.Shared == 0 {
		n.Port.Buffer = deepBuffer
	}
	w := &World{
		net: simlink.New(simlink.Config{Seed: seed, Rate: n.Rate, Delay: n.RTT / 2, MTU: n.MTU, FrameSize: n.MTU, Loss: n.Loss,
			Switch: n.Port, Hold: n.Hold, Frames: cmp.Or(n.Frames, hostFrames), Unchecked: true}),
		rng:    rand.New(rand.NewPCG(seed, 2)),
		number: make(map[*simlink.Link]int),
		memory: make([]byte, memory),
		alarms: newAlarms(maxMachines),

		portRate: float64(n.Rate),
	}
	for _, h := range n.Hosts {
		w.addHost(h)
	}
	return w
}

// addLink makes the link of the next machine.
func (w *World) addLink(h simlink.Host) *simlink.Link {
	i := len(w.all)
	l := w.net.LinkOf(address(i), h)
	w.number[l] = i
	return l
}

// add adds a machine behind the link that was made last.
func (w *World) add(m machine) int {
	w.all, w.busy = append(w.all, m), append(w.busy, 0)
	return len(w.all) - 1
}

func address(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 17473)
}

func (w *World) now() int64 { return w.net.Now() }

// wake makes machine i have a turn at a time, or when it is not busy any more.
func (w *World) wake(i int, at int64) {
	if at = max(at, w.busy[i]); at < w.alarms.get(i) {
		w.alarms.set(i, at)
	}
}

// run lets the world run for a time.
func (w *World) run(d time.Duration) { w.runUntil(w.now()+int64(d), nil) }

// until lets the world run until a condition holds. It panics if that takes longer than limit, because the figures
// would be of another scenario.
func (w *World) until(what string, limit time.Duration, cond func() bool) {
	if !w.within(limit, cond) {
		panic(fmt.Sprintf("network: %s did not happen within %v", what, limit))
	}
}

// within lets the world run until a condition holds, for at most the time d. It reports whether the condition holds.
func (w *World) within(d time.Duration, cond func() bool) bool {
	w.runUntil(w.now()+int64(d), cond)
	return cond()
}

// runUntil lets the world run until a time, or until done, which may be nil, is true after a turn.
func (w *World) runUntil(end int64, done func() bool) {
	for {
		i, at := w.alarms.first()
		if arrival, ok := w.net.Next(); ok && arrival <= at {
			if arrival > end {
				break
			}
			if l := w.net.Step(); l != nil {
				w.wake(w.number[l], arrival)
			}
			continue
		}
		if at > end {
			break
		}
		w.net.Advance(at)
		w.turn(i, at)
		if done != nil && done() {
			return
		}
	}
	w.net.Advance(end)
}

// turn gives machine i its turn.
func (w *World) turn(i int, now int64) {
	next, packets := w.all[i].turn(now)
	w.busy[i] = now + int64(pollCost) + int64(packets)*int64(packetCost) + w.rng.Int64N(int64(costJitter))
	w.alarms.set(i, max(next, w.busy[i]))
}
