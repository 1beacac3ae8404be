package congestion

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// baseDelay estimates the round trip of the empty network: the shortest of one to two BasePeriods (RFC 6817 §2.4.2).
type baseDelay struct {
	current, previous time.Duration // shortest round trip of this period and of the last one; 0: no sample
	endsAt            clock.Time    // end of this period
}

func (b *baseDelay) sample(now clock.Time, d time.Duration) {
	if now >= b.endsAt {
		b.previous, b.current, b.endsAt = b.current, 0, now.Add(BasePeriod)
	}
	if b.current == 0 || d < b.current {
		b.current = d
	}
}

func (b *baseDelay) delay() time.Duration {
	if b.previous == 0 {
		return b.current
	}
	return min(b.current, b.previous)
}
