package congestion

import (
	"math"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// pacer spaces out packets (RFC 9002 §7.7): single packets while the window is small, with a random part, and bursts on a
// long path. A burst takes one timer.
type pacer struct {
	nextAt clock.Time // when the next packet may leave
	wait   int32      // what a burst takes beyond its first packet, in ns
	seed   uint32     // of the random numbers
}

// packetSent notes that a packet leaves, and computes when the next one may leave: on average gap later. Packets that
// leave late, by at most burst, do not delay the following ones.
func (p *pacer) packetSent(now clock.Time, gap, burst time.Duration) {
	p.wait = int32(min(burst-gap, math.MaxInt32))
	jitter := time.Duration(float64(gap) * gapJitter * (2*p.random() - 1))
	p.nextAt = max(p.nextAt, now.Add(-burst-jitter)).Add(gap + jitter)
}

// nextBurst returns when all packets of the next burst may leave.
func (p *pacer) nextBurst() clock.Time { return p.nextAt.Add(time.Duration(p.wait)) }

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
