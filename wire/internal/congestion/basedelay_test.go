package congestion

import (
	"testing"
	"time"
)

// A path that becomes longer must be noticed, and its window be found again.
func TestLongerPath(t *testing.T) {
	for _, rtt := range []time.Duration{60 * us, 120 * us, 300 * us, 5 * time.Millisecond} {
		p := settled(20)
		n := 0
		for ; p.BaseDelay() < rtt && n < 100; n++ {
			p.rounds(1, rtt, 0)
		}
		if n > 8 {
			t.Fatalf("a path of 8 µs became %v: after %d rounds the base delay is %v, the window %v", rtt, n, p.BaseDelay(), p.Window())
		}
		if p.rounds(12, rtt, 0); p.Window() < 100 {
			t.Errorf("round trip %v: %d rounds later the window is %v", rtt, 12, p.Window())
		}
	}
}

// A path that becomes longer by less than twice the target must be noticed by a small window, which settles at a rate for
// which this delay is the target. A queue of the same length, whose length changes by the packets of others, is no path.
func TestSlightlyLongerPath(t *testing.T) {
	for _, tt := range []struct {
		name   string
		window float64
		rtt    time.Duration
		change time.Duration // from one round to the next
		longer bool
	}{
		{"40 µs, one packet", 1, 48 * us, 0, true},
		{"60 µs, half a packet", 0.5, 68 * us, 0, true},
		{"2 ms, ten packets", 10, 2 * time.Millisecond, 0, true},
		{"queue of 40 µs", 1, 48 * us, 2 * us, false},
		{"queue of 15 µs", 1, 23 * us, us, false},
	} {
		p := settled(tt.window)
		for i := range 24 {
			p.rounds(1, tt.rtt+time.Duration(i%2)*tt.change, 0)
		}
		if longer := p.BaseDelay() == tt.rtt; longer != tt.longer {
			t.Errorf("%s: the base delay is %v, the window %v", tt.name, p.BaseDelay(), p.Window())
		}
		if tt.longer && p.Window() < 20 {
			t.Errorf("%s: the window is %v, want at least 20", tt.name, p.Window())
		}
	}
}

// When the path turns out to be longer, the window must get back what it has lost to the delay.
func TestWindowAfterLongerPath(t *testing.T) {
	for _, tt := range []struct{ before, want float64 }{{8, 8}, {100, InitialPackets}} {
		p := settled(tt.before)
		for p.BaseDelay() < time.Millisecond {
			p.rounds(1, time.Millisecond, 0)
		}
		if p.Window() < tt.want {
			t.Errorf("a window of %v is %v, want %v", tt.before, p.Window(), tt.want)
		}
	}
}

// A queue of other connections that ends must not raise the base delay.
func TestQueueIsNoPath(t *testing.T) {
	p := settled(20)
	for range 50 {
		p.rounds(12, 60*us, 0)
		p.rounds(1, 8*us, 0)
	}
	if p.BaseDelay() != 8*us {
		t.Errorf("the base delay is %v, want 8µs", p.BaseDelay())
	}
}

// The base delay belongs to full packets.
func TestBaseDelayOfFullPackets(t *testing.T) {
	p := newPath()
	p.Sample(8*us, false)
	p.SetPacketSize(9000)
	p.Probed(14 * us)
	if p.Sample(9*us, false); p.BaseDelay() != 14*us {
		t.Errorf("after a sample of a small packet the base delay is %v, want 14µs", p.BaseDelay())
	}
	if p.Sample(13*us, true); p.BaseDelay() != 13*us {
		t.Errorf("the base delay is %v, want 13µs", p.BaseDelay())
	}
}
