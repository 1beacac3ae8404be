package congestion

import (
	"math"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

const (
	us     = time.Microsecond
	packet = 1460 // bytes
)

// path is a connection that keeps its window full on a path with a given round trip.
type path struct {
	Controller
	now clock.Time
	psn seq.Num
	ce  uint16
}

func newPath() *path {
	p := &path{Controller: New(0, 0), now: 1}
	p.SetPacketSize(packet)
	return p
}

// rounds runs n round trips of length rtt, each with the given number of marked packets.
func (p *path) rounds(n int, rtt time.Duration, marks int) {
	for range n {
		packets := max(int(p.Window()), 1)
		p.Limit(packets)
		p.now = p.now.Add(rtt)
		p.Sample(rtt, true)
		p.ce += uint16(marks)
		p.psn += seq.Num(packets + 1)
		p.Acked(p.now, p.psn, p.psn, packets, p.ce)
	}
}

// settled returns a path with a base delay of 8 µs and a window of so many packets, after slow start.
func settled(window float64) *path {
	p := newPath()
	p.Sample(8*us, true)
	p.window, p.ssthresh, p.round = window*packet, window*packet, round{endPSN: p.round.endPSN}
	return p
}

// port is the output port of a switch in a fluid model: the delay of all connections follows from their windows.
func port(rate float64, base time.Duration, all ...*path) time.Duration {
	var sum float64
	for _, p := range all {
		sum += p.window
	}
	return max(base, time.Duration(sum/rate*1e9))
}

func TestInitialWindow(t *testing.T) {
	for size, want := range map[int]float64{1200: InitialPackets * 1200, 1460: InitialBytes, 8972: 2 * 8972, 65000: 2 * 65000} {
		c := New(0, 0)
		if c.SetPacketSize(size); c.window != want {
			t.Errorf("packets of %d bytes: the window is %v bytes, want %v", size, c.window, want)
		}
	}
}

func TestSlowStart(t *testing.T) {
	p := newPath()
	p.rounds(3, 20*us, 0)
	if p.Window() < 60 {
		t.Errorf("after three rounds the window is %v, want more than 60", p.Window())
	}
	p.rounds(1, 40*us, 0)
	w := p.Window()
	if p.rounds(3, 40*us, 0); p.Window() > w {
		t.Errorf("with a queue the window grows from %v to %v", w, p.Window())
	}
	p = newPath()
	p.rounds(1, 20*us, 3)
	w = p.Window()
	if p.rounds(3, 20*us, 3); p.Window() > 1.5*w {
		t.Errorf("with marks slow start goes on: the window grows from %v to %v in three rounds", w, p.Window())
	}
}

// A path that has room must be filled again, also if slow start has ended early.
func TestRoom(t *testing.T) {
	p := settled(4)
	p.base.delay = 10 * time.Millisecond
	p.rounds(emptyRounds+7, 10*time.Millisecond, 0)
	if p.Window() < 256 {
		t.Errorf("the window is %v, want at least 256", p.Window())
	}
}

// A window that delays no packet must neither grow nor shrink.
func TestUnlimited(t *testing.T) {
	for _, d := range []time.Duration{8 * us, time.Millisecond} {
		p := settled(2)
		p.Sample(d, true)
		p.ce++
		if p.Acked(p.now, 20, 20, 10, p.ce); p.Window() != 2 {
			t.Errorf("delay %v: the window is %v", d, p.Window())
		}
	}
}

// The target is longer for lower rates, and at most MaxQueue.
func TestTarget(t *testing.T) {
	last := time.Duration(0)
	for r := 12.5e9; r > 1e5; r /= 2 {
		d := target(r)
		if d < last || d > MaxQueue {
			t.Errorf("at %v MB/s the target is %v, at the double rate %v", r/1e6, d, last)
		}
		last = d
	}
	if last != MaxQueue {
		t.Errorf("at a low rate the target is %v", last)
	}
}

// Connections on one port must converge to equal rates and the target, whatever their windows were.
func TestConverge(t *testing.T) {
	for _, n := range []int{2, 8, 32} {
		var all []*path
		for i := range n {
			all = append(all, settled(1+float64(i%4)*3))
		}
		const rate = 25e9 / 8
		for range 4000 {
			d := port(rate, 8*us, all...)
			for _, p := range all {
				p.rounds(1, d, 0)
			}
		}
		least, most := math.Inf(1), 0.0
		for _, p := range all {
			least, most = min(least, p.window), max(most, p.window)
		}
		q, want := port(rate, 8*us, all...)-8*us, target(rate/float64(n))
		t.Logf("%d connections: windows of %.1f to %.1f packets, queue %v, target %v", n, least/packet, most/packet, q, want)
		if most > 1.2*least || q < want*8/10 || q > want*12/10 {
			t.Errorf("%d connections: windows of %.1f to %.1f packets, queue %v, target %v", n, least/packet, most/packet, q, want)
		}
	}
}

// Marks must lower the queue.
func TestMarks(t *testing.T) {
	const rate = 25e9 / 8
	queue := func(marked bool) time.Duration {
		a, b := settled(20), settled(20)
		for range 2000 {
			d, marks := port(rate, 8*us, a, b), 0
			if marked && d > 10*us {
				marks = 100
			}
			a.rounds(1, d, marks)
			b.rounds(1, d, marks)
		}
		return port(rate, 8*us, a, b) - 8*us
	}
	if free, marked := queue(false), queue(true); marked > free/2 {
		t.Errorf("the queue is %v without marks and %v with marks above 2 µs", free, marked)
	}
}

func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(p *path)
		want float64
	}{
		{"nothing", func(p *path) {}, 32},
		{"a random loss", func(p *path) { p.Lost(1) }, 32},
		{"a burst of losses", func(p *path) { p.Lost(20) }, 12},
		{"more losses than packets", func(p *path) { p.Lost(100) }, 1},
		{"a timeout", func(p *path) { p.TimedOut(p.now, time.Millisecond) }, 1},
		{"many timeouts in a row", func(p *path) {
			for range 10 {
				p.TimedOut(p.now, time.Millisecond)
			}
		}, 1},
		{"many timeouts with progress", func(p *path) {
			for range 10 {
				p.TimedOut(p.now, time.Millisecond)
				p.Progress()
			}
		}, MinWindow},
		{"a spurious timeout", func(p *path) {
			p.TimedOut(p.now, time.Millisecond)
			p.TimedOut(p.now, time.Millisecond)
			p.Undo()
		}, 32},
		{"a timeout, then progress", func(p *path) { p.TimedOut(p.now, time.Millisecond); p.Progress(); p.Undo() }, 1},
	} {
		p := settled(32)
		if tt.do(p); math.Abs(p.Window()-tt.want) > 1e-9 {
			t.Errorf("%s: the window is %v, want %v", tt.name, p.Window(), tt.want)
		}
	}
}

// Losses must shrink the window only if more than 2 % of the packets are lost, and only as long as they are.
func TestRandomLosses(t *testing.T) {
	for _, tt := range []struct {
		every int // one of so many packets is lost
		kept  bool
	}{{1000, true}, {100, true}, {60, true}, {30, false}, {20, false}} {
		p := settled(32)
		for i := range 2000 {
			p.noise.acked(32)
			if before := i * 32 / tt.every; (i+1)*32/tt.every > before {
				p.Lost((i+1)*32/tt.every - before)
			}
		}
		if kept := p.Window() == 32; kept != tt.kept {
			t.Errorf("one of %d packets is lost: the window of 32 is %v", tt.every, p.Window())
		}
		for range 20000 / 32 {
			p.noise.acked(32)
		}
		before := p.Window()
		if p.Lost(1); p.Window() != before {
			t.Errorf("one of %d packets was lost: a later loss shrinks the window of %v to %v", tt.every, before, p.Window())
		}
	}
}

// A window beyond the receive window of the peer has no effect but on the pacer.
func TestLargestWindow(t *testing.T) {
	p := newPath()
	p.SetLargest(64)
	if p.rounds(12, 20*us, 0); p.Window() != 64 {
		t.Errorf("the window is %v, want 64", p.Window())
	}
}

// On a long path the target is at most half of a queue that was full, until a longer one has passed.
func TestFullQueue(t *testing.T) {
	lost := func(n int, q time.Duration) *path {
		p := settled(100)
		p.base.delay = 10 * time.Millisecond
		p.Sample(p.base.delay+q, true)
		p.Lost(n)
		return p
	}
	target := func(p *path) time.Duration { return p.target(10 * time.Millisecond) }
	if got := target(lost(20, 100*us)); got != 50*us {
		t.Errorf("a queue of 100 µs was full: the target is %v", got)
	}
	for name, p := range map[string]*path{"random losses": lost(2, 100*us), "losses without a queue": lost(20, us)} {
		if got := target(p); got != 10*time.Millisecond/BaseShare {
			t.Errorf("%s: the target is %v", name, got)
		}
	}
	p := lost(20, 100*us)
	if p.Sample(p.base.delay+400*us, true); target(p) != 200*us {
		t.Errorf("after a queue of 400 µs has passed, the target is %v", target(p))
	}
}

// The first acknowledgement after timeouts must end the random time that a packet waits, and a window that is so small that
// it would be the reason for the next wait, if the path has no queue.
func TestAfterTimeouts(t *testing.T) {
	p := settled(8)
	for range 8 {
		p.TimedOut(p.now, 200*time.Millisecond)
		p.Progress()
	}
	p.TimedOut(p.now, 200*time.Millisecond)
	if p.Open(p.now, 0) {
		t.Fatal("the packet after a timeout leaves at once")
	}
	p.Sample(8*us, true)
	p.Progress()
	p.Acked(p.now, 1, 2, 1, 0)
	if !p.Open(p.now, 0) || p.Window() != 1 {
		t.Errorf("after an acknowledgement the window is %v, and a packet leaves: %v", p.Window(), p.Open(p.now, 0))
	}
}
