package congestion

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

const us = time.Microsecond

// path is a connection that keeps its window full on a path with a given round trip.
type path struct {
	Controller
	now clock.Time
	psn seq.Num
	ce  uint16
}

func newPath() *path { return &path{Controller: New(0, 0)} }

// rounds runs n round trips of length rtt, each with the given number of marked packets.
func (p *path) rounds(n int, rtt time.Duration, marks int) {
	for range n {
		packets := max(int(p.window), 1)
		p.Limit()
		p.now = p.now.Add(rtt)
		p.Sample(p.now, rtt)
		first := p.psn
		p.psn += seq.Num(packets)
		p.ce += uint16(marks)
		p.Acked(p.now, p.psn, p.psn+1, p.psn.Sub(first), p.ce)
		p.psn++
	}
}

func TestSlowStart(t *testing.T) {
	p := newPath()
	p.slowdown.nextAt = clock.Never
	p.rounds(2, 20*us, 0)
	if p.Window() != 128 {
		t.Errorf("after two rounds the window is %v, want 128", p.Window())
	}
	p.rounds(20, 20*us, 0)
	if p.Window() != MaxWindow {
		t.Errorf("the window is %v, want %v", p.Window(), MaxWindow)
	}
}

// A window that delays no packet must not grow.
func TestUnlimited(t *testing.T) {
	c := New(0, 0)
	c.Sample(0, 20*us)
	c.Acked(0, 10, 20, 10, 0)
	if c.Window() != InitialWindow {
		t.Errorf("the window is %v, want %v", c.Window(), InitialWindow)
	}
}

// settled returns a path of 20 µs with a window of 32, after slow start, with no slowdown due.
func settled() *path {
	p := newPath()
	p.Sample(p.now, 20*us)
	p.window, p.ssthresh, p.slowdown.nextAt = 32, 32, clock.Never
	return p
}

func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(p *path)
		want float64
	}{
		{"nothing", func(p *path) {}, 32},
		{"a random loss", func(p *path) { p.Lost(p.psn, p.psn+32, 1) }, 32},
		{"many losses without a queue", func(p *path) { p.Lost(p.psn, p.psn+32, 11) }, 32 * NoiseFactor},
		{"the same losses again", func(p *path) { p.Lost(p.psn, p.psn+32, 11); p.Lost(p.psn+1, p.psn+32, 1) }, 32 * NoiseFactor},
		{"a loss at a queue", func(p *path) { p.round.minDelay = time.Millisecond; p.Lost(p.psn, p.psn+32, 1) }, 32 * LossFactor},
		{"a timeout", func(p *path) { p.TimedOut(p.psn + 32) }, 1},
		{"many timeouts", func(p *path) {
			for range 10 {
				p.TimedOut(p.psn + 32)
			}
		}, MinWindow},
		{"a spurious timeout", func(p *path) { p.TimedOut(p.psn); p.TimedOut(p.psn); p.Undo() }, 32},
		{"a timeout, then progress", func(p *path) { p.TimedOut(p.psn); p.Progress(); p.Undo() }, 1},
	} {
		p := settled()
		if tt.do(p); p.Window() < tt.want-1e-9 || p.Window() > tt.want+1e-9 {
			t.Errorf("%s: the window is %v, want %v", tt.name, p.Window(), tt.want)
		}
	}
}

// Without a queue, losses must shrink the window only if more than 2 % of the packets are lost, and only as long as they
// are.
func TestRandomLosses(t *testing.T) {
	for _, tt := range []struct {
		every int // one of so many packets is lost
		kept  bool
	}{{1000, true}, {100, true}, {60, true}, {40, false}, {20, false}} {
		p := settled()
		for i := range 2000 {
			p.rounds(1, 20*us, 0)
			if before := i * 32 / tt.every; (i+1)*32/tt.every > before {
				p.Lost(p.psn, p.psn+32, (i+1)*32/tt.every-before)
			}
			p.window = min(p.window, 32) // growth is not tested here
		}
		if kept := p.Window() == 32; kept != tt.kept {
			t.Errorf("one of %d packets is lost: the window of 32 is %v", tt.every, p.Window())
		}
		for range 20000 / 32 {
			p.rounds(1, 20*us, 0)
		}
		before := p.Window()
		if p.Lost(p.psn, p.psn+32, 1); p.Window() != before {
			t.Errorf("one of %d packets was lost: a later loss shrinks the window of %v to %v", tt.every, before, p.Window())
		}
	}
}

// Marks must shrink the window in proportion, and by at most one half per round trip.
func TestMarks(t *testing.T) {
	few, many := settled(), settled()
	few.alpha, many.alpha = 0.1, 0.1
	few.rounds(2, 20*us, 1)
	many.rounds(2, 20*us, 20)
	if few.Window() <= many.Window() || many.Window() >= 32 {
		t.Errorf("windows after few and many marks: %v, %v", few.Window(), many.Window())
	}
	all := settled()
	all.rounds(1, 20*us, 32)
	if w := all.Window(); w < 16 || w > 17 {
		t.Errorf("a round of marks leaves %v of 32, want a half", w)
	}
}

// Delay must not shrink the window below DelayFloor.
func TestDelay(t *testing.T) {
	p := settled()
	p.rounds(100, 5*time.Millisecond, 0)
	if p.Window() != DelayFloor {
		t.Errorf("delay leaves a window of %v, want %v", p.Window(), DelayFloor)
	}
}

// With a window below one packet, single packets must leave, spaced by the pacer.
func TestPacing(t *testing.T) {
	p := settled()
	p.window = 0.5
	if !p.Open(p.now, 0) || p.Open(p.now, 1) {
		t.Error("an empty network does not take one packet, or takes two")
	}
	p.Sent(p.now, 20*us)
	if want := p.now.Add(40 * us); p.NextSend() != want || p.Open(want-1, 0) || !p.Open(want, 0) {
		t.Errorf("the next packet may leave at %v, want %v", p.NextSend(), want)
	}
	p.window = MinWindow
	if p.Sent(p.now, time.Millisecond); p.NextSend() != p.now.Add(maxGap) {
		t.Errorf("packets are %v apart, want %v", p.NextSend().Sub(p.now), maxGap)
	}
}

// A connection that fills its window must slow down from time to time, and then restore its window.
func TestSlowdown(t *testing.T) {
	p := newPath()
	p.rounds(10, 20*us, 0)
	p.now = p.now.Add(slowdownEvery)
	p.rounds(1, 20*us, 0)
	if p.Window() != slowdownWindow {
		t.Fatalf("the window is %v, want %v", p.Window(), slowdownWindow)
	}
	p.Lost(p.psn, p.psn+1, 30) // shrinks the window that will be restored
	p.rounds(slowdownRounds, 20*us, 0)
	if want := MaxWindow * NoiseFactor; p.Window() < want-1e-9 || p.Window() > want+2 {
		t.Errorf("after the slowdown the window is %v, want %v", p.Window(), want)
	}
}

// The base delay must follow a path that becomes longer, within two periods.
func TestBaseDelay(t *testing.T) {
	var b baseDelay
	now := clock.Time(1)
	b.sample(now, 20*us)
	b.sample(now, 90*us)
	if b.delay() != 20*us {
		t.Errorf("the base delay is %v, want 20µs", b.delay())
	}
	for range 2 {
		now = now.Add(BasePeriod)
		b.sample(now, 90*us)
	}
	if b.delay() != 90*us {
		t.Errorf("two periods later the base delay is %v, want 90µs", b.delay())
	}
}

// A group is a quarter of the window, less on a long path, and at least one packet. A late poll does not make the path
// long.
func TestGroup(t *testing.T) {
	for _, tt := range []struct {
		window float64
		rtt    time.Duration
		want   int
	}{
		{window: 192, want: 48},
		{window: 192, rtt: 20 * us, want: 48},
		{window: 192, rtt: time.Millisecond, want: 48},
		{window: 192, rtt: 4 * time.Millisecond, want: 12},
		{window: 192, rtt: time.Second, want: 1},
		{window: 7, rtt: 20 * us, want: 1},
		{window: 0.5, rtt: 20 * us, want: 1},
	} {
		p := newPath()
		if tt.rtt > 0 {
			p.Sample(1, tt.rtt)
			p.Sample(2, tt.rtt+time.Second)
		}
		p.window = tt.window
		if got := p.Group(); got != tt.want {
			t.Errorf("window %v at %v: %d packets, want %d", tt.window, tt.rtt, got, tt.want)
		}
	}
}
