// Package rtt estimates the round-trip time of a path, as RFC 6298 does, without the time that the peer holds an
// acknowledgement back.
//
// An Estimator has one owner. Its zero value has no sample.
package rtt

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

const (
	// InitialPTO is the probe timeout before there is a sample.
	InitialPTO = 2 * time.Millisecond
	// MinPTO is the shortest probe timeout.
	MinPTO = 200 * time.Microsecond
	// Outlier bounds a sample, in probe timeouts: the estimate follows a path that becomes slow within a few samples,
	// and one packet that a stopped peer held for seconds does not spoil it.
	Outlier = 4
	// maxSample is the longest round trip that is believed.
	maxSample = 10 * time.Second
)

// Estimator is the estimate for one path.
type Estimator struct {
	smoothed time.Duration // SRTT
	variance time.Duration // RTTVAR
}

// Sample returns the round trip that an echoed time stamp shows: the time since the stamped packet left, without what the
// peer held it. It reports false if echo is 0, which means none, or cannot be right.
func Sample(now clock.Time, echo uint32) (d time.Duration, ok bool) {
	d = time.Duration(int32(now.Stamp()-echo)) << clock.StampShift
	return max(d, 1), echo != 0 && d >= 0 && d < maxSample
}

// Update adds a sample (RFC 6298 §2.2 and §2.3). It is bounded by Outlier.
func (r *Estimator) Update(d time.Duration) {
	if r.smoothed == 0 {
		r.smoothed, r.variance = d, d/2
		return
	}
	d = min(d, Outlier*r.PTO())
	r.variance += ((r.smoothed - d).Abs() - r.variance) / 4
	r.smoothed += (d - r.smoothed) / 8
}

// Smoothed is SRTT; 0 before the first sample.
func (r *Estimator) Smoothed() time.Duration { return r.smoothed }

// Variance is RTTVAR.
func (r *Estimator) Variance() time.Duration { return r.variance }

// PTO is the probe timeout (RFC 9002 §6.2.1): how long an acknowledgement may take. A peer that was asked is
// probed again after it.
func (r *Estimator) PTO() time.Duration {
	if r.smoothed == 0 {
		return InitialPTO
	}
	return max(r.smoothed+4*r.variance, MinPTO)
}
