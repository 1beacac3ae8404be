package congestion

import (
	"math"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Small windows are paced: at their rate on average, with one packet at a time below one packet.
func TestPacing(t *testing.T) {
	p := settled(0.5)
	if !p.Open(p.now, 0) || p.Open(p.now, 1) {
		t.Error("an empty network does not take one packet, or takes two")
	}
	begin := p.now
	for range 1000 {
		p.Sent(p.now, 20*us, packet)
		next := p.NextSend(p.now, 0)
		if p.Open(next-1, 0) || !p.Open(next, 0) {
			t.Fatalf("the next packet may not leave at %v", next)
		}
		p.now = next
	}
	if mean := p.now.Sub(begin) / 1000; mean < 30*us || mean > 42*us {
		t.Errorf("packets are %v apart on average, want about 35 µs", mean)
	}
	p = settled(8)
	if p.Sent(p.now, 20*us, packet); !p.Open(p.now, 1) || p.NextSend(p.now, 1) != clock.Never {
		t.Error("a large window is paced")
	}
}

// On a long path a large window leaves in bursts: each takes one timer, and together they have a little more than the rate
// of a window in a round trip, twice as much in slow start.
func TestPacingOfLongPath(t *testing.T) {
	for _, tt := range []struct {
		window  float64
		rtt     time.Duration
		slow    bool
		burst   int // packets
		windows float64
	}{
		{100, time.Millisecond, false, 25, steadyPace},
		{100, time.Millisecond, true, 25, startPace},
		{1000, time.Millisecond, false, MaxBurst/packet + 1, steadyPace},
		{1000, 10 * time.Millisecond, false, 25, steadyPace},
	} {
		p := settled(tt.window)
		if p.base.delay, p.newest = tt.rtt, tt.rtt; tt.slow {
			p.ssthresh = math.Inf(1)
		}
		begin, sent, most := p.now, 0, 0
		for p.now.Sub(begin) < 10*tt.rtt {
			n := 0
			for ; p.Open(p.now, 0); n++ {
				p.Sent(p.now, tt.rtt, packet)
			}
			sent, most = sent+n, max(most, n)
			p.now = p.NextSend(p.now, 0)
		}
		if most > tt.burst+2 || most < tt.burst/2 {
			t.Errorf("window %v at %v: bursts of up to %d packets, want %d", tt.window, tt.rtt, most, tt.burst)
		}
		if got := float64(sent) / tt.window / 10; got < 0.95*tt.windows || got > 1.05*tt.windows {
			t.Errorf("window %v at %v, slow start %v: %.2f windows in a round trip, want %v", tt.window, tt.rtt, tt.slow, got, tt.windows)
		}
	}
}

// A packet that waits for the pacer in a window with room must not count as delayed by the window.
func TestLimitOfPacedWindow(t *testing.T) {
	for pipe, want := range map[int]bool{0: false, 50: false, 74: false, 76: true, 100: true} {
		p := settled(100)
		p.base.delay = time.Millisecond
		if p.Limit(pipe); p.round.limited != want {
			t.Errorf("%d of 100 packets: limited %v", pipe, p.round.limited)
		}
	}
}

// After a timeout the next packet leaves at a random time.
func TestScatter(t *testing.T) {
	seen := map[clock.Time]bool{}
	for psn := range seq.Num(20) {
		c := New(psn*77777, 0)
		c.TimedOut(0, time.Millisecond)
		if c.pacer.nextAt > clock.Time(timeoutJitter*float64(time.Millisecond)) {
			t.Errorf("the next packet leaves after %v", c.pacer.nextAt)
		}
		seen[c.pacer.nextAt] = true
	}
	if len(seen) < 18 {
		t.Errorf("20 connections leave at %d times", len(seen))
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
			p.Sample(tt.rtt, true)
			p.Sample(tt.rtt+time.Second, true)
		}
		p.window = tt.window * packet
		if got := p.Group(); got != tt.want {
			t.Errorf("window %v at %v: %d packets, want %d", tt.window, tt.rtt, got, tt.want)
		}
	}
}
