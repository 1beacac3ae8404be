package congestion

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// pacer spaces out packets while the window is small (RFC 9002 §7.7), at times with a random part.
type pacer struct {
	nextAt clock.Time // when the next packet may leave
	seed   uint32     // of the random numbers
}

// packetSent notes that a packet leaves, and computes when the next one may leave: on average gap later. A packet that
// leaves late does not delay the following ones.
func (p *pacer) packetSent(now clock.Time, gap time.Duration) {
	gap += time.Duration(float64(gap) * gapJitter * (2*p.random() - 1))
	p.nextAt = max(p.nextAt, now.Add(-gap)).Add(gap)
}

// scatter delays the next packet by a random part of span.
func (p *pacer) scatter(now clock.Time, span time.Duration) {
	p.nextAt = now.Add(time.Duration(float64(span) * p.random()))
}

// random returns a number from 0 to 1, of a linear congruential generator: packets need no better one, and it costs
// nothing.
func (p *pacer) random() float64 {
	p.seed = p.seed*1664525 + 1013904223
	return float64(p.seed>>8) / (1 << 24)
}
