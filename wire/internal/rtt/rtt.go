// Package rtt estimates the round-trip time of a path (RFC 6298). The time for which the peer delays an acknowledgement
// is not included.
//
// An Estimator has one owner. The zero value has no sample.
package rtt

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

const (
	// InitialPTO is the probe timeout before the first sample.
	InitialPTO = 2 * time.Millisecond
	// MinPTO is the shortest probe timeout.
	MinPTO = 200 * time.Microsecond
	// Outlier limits how far a sample is believed. Everything that makes a sample wrong makes it too long: a stopped
	// process, a full queue, a slow host. So the estimator treats long and short samples differently:
	//   - A sample longer than Outlier probe timeouts is reduced to Outlier probe timeouts, the first sample included. If
	//     a path becomes slow, the estimate follows within a few samples. But one packet that a stopped peer held for
	//     seconds changes the estimate little.
	//   - A sample shorter than 1/Outlier of the estimate proves that the estimate is wrong, and replaces it.
	Outlier = 4
	// maxSample is the longest sample that is accepted.
	maxSample = 10 * time.Second
)

// Estimator is the estimate for one path.
type Estimator struct {
	smoothed time.Duration // SRTT
	variance time.Duration // RTTVAR
}

// Sample computes the round trip from an echoed time stamp, as the time since the packet with that time stamp left. The
// peer has added its own delay to the time stamp that it echoes. So the delay cancels out in the difference. Sample
// reports false if the packet has no echo (0) or an implausible one.
func Sample(now clock.Time, echo uint32) (d time.Duration, ok bool) {
	d = time.Duration(int32(now.Stamp()-echo)) << clock.StampShift
	return max(d, 1), echo != 0 && d >= 0 && d < maxSample
}

// Update adds a sample to the estimate (RFC 6298 §2.2 and §2.3). Outlier says what becomes of an unusual sample.
func (r *Estimator) Update(d time.Duration) {
	d = min(d, Outlier*r.PTO())
	if r.smoothed == 0 || d < r.smoothed/Outlier {
		r.smoothed, r.variance = d, d/2
		return
	}
	r.variance += ((r.smoothed - d).Abs() - r.variance) / 4
	r.smoothed += (d - r.smoothed) / 8
}

// Smoothed returns SRTT, or 0 before the first sample.
func (r *Estimator) Smoothed() time.Duration { return r.smoothed }

// Variance returns RTTVAR.
func (r *Estimator) Variance() time.Duration { return r.variance }

// PTO returns the probe timeout (RFC 9002 §6.2.1): the time within which an acknowledgement should arrive.
func (r *Estimator) PTO() time.Duration {
	if r.smoothed == 0 {
		return InitialPTO
	}
	return max(r.smoothed+4*r.variance, MinPTO)
}
