package rtt

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

const us = time.Microsecond

func TestSample(t *testing.T) {
	now := clock.Time(time.Second)
	for _, tt := range []struct {
		name string
		echo uint32
		want time.Duration
		ok   bool
	}{
		{"none", 0, 0, false},
		{"a millisecond ago", now.Add(-time.Millisecond).Stamp(), time.Millisecond, true},
		{"now", now.Stamp(), 1, true},
		{"from the future", now.Add(time.Millisecond).Stamp(), 0, false},
		{"too long ago", now.Add(-maxSample).Stamp(), 0, false},
	} {
		d, ok := Sample(now, tt.echo)
		if ok != tt.ok || ok && (d < tt.want || d > tt.want+64) {
			t.Errorf("%s: got %v, %v, want %v, %v", tt.name, d, ok, tt.want, tt.ok)
		}
	}
}

// Samples must be right when time stamps wrap, which happens every 275 s.
func TestSampleAcrossWrap(t *testing.T) {
	wrap := clock.Time(1 << (32 + clock.StampShift))
	d, ok := Sample(wrap.Add(time.Millisecond), wrap.Add(-time.Millisecond).Stamp())
	if !ok || d != 2*time.Millisecond {
		t.Errorf("got %v, %v, want 2ms", d, ok)
	}
}

func TestEstimate(t *testing.T) {
	var r Estimator
	if r.PTO() != InitialPTO || r.Smoothed() != 0 {
		t.Errorf("without a sample the timeout is %v, want %v", r.PTO(), InitialPTO)
	}
	r.Update(800 * us)
	if r.Smoothed() != 800*us || r.Variance() != 400*us || r.PTO() != 2400*us {
		t.Errorf("after one sample of 800 µs: %v, %v, %v", r.Smoothed(), r.Variance(), r.PTO())
	}
	r.Update(1600 * us)
	if r.Smoothed() != 900*us || r.Variance() != 500*us {
		t.Errorf("after another of 1600 µs: %v, %v", r.Smoothed(), r.Variance())
	}
	for range 200 {
		r.Update(10 * us)
	}
	if r.PTO() != MinPTO {
		t.Errorf("the timeout of a short path is %v, want %v", r.PTO(), MinPTO)
	}
}

// A packet that a stopped peer held for seconds must move the estimate no further than Outlier allows. If a path stays
// slow, the estimate must follow within a few samples.
func TestOutlier(t *testing.T) {
	var r Estimator
	for range 20 {
		r.Update(100 * us)
	}
	before := r.PTO()
	r.Update(9 * time.Second)
	if most := Outlier * before; r.Smoothed() > 100*us+most/8 {
		t.Errorf("one sample of 9 s makes the round trip %v", r.Smoothed())
	}
	for range 60 {
		r.Update(50 * time.Millisecond)
	}
	if r.Smoothed() < 45*time.Millisecond {
		t.Errorf("after 60 samples of 50 ms the round trip is %v", r.Smoothed())
	}
}

// The first sample may contain a stop of a process too. It counts for at most Outlier times the first probe timeout.
func TestFirstSampleIsBounded(t *testing.T) {
	var r Estimator
	r.Update(3 * time.Second)
	if got, most := r.Smoothed(), Outlier*InitialPTO; got != most {
		t.Errorf("a first sample of 3 s makes the round trip %v, want %v", got, most)
	}
}

// However wrong an estimate is, one sample of an honest round trip must replace it.
func TestShortSampleReplacesEstimate(t *testing.T) {
	for held := 1; held < 40; held++ {
		var r Estimator
		r.Update(20 * us)
		for range held {
			r.Update(9 * time.Second)
		}
		if r.Update(20 * us); r.Smoothed() > Outlier*20*us || r.PTO() > 5*time.Millisecond {
			t.Errorf("after %d samples of a stopped peer and one of 20 µs: round trip %v, timeout %v", held, r.Smoothed(), r.PTO())
		}
	}
}
