package congestion

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// baseDelay estimates the round trip of the empty network: the shortest of one to two BasePeriods (RFC 6817 §2.4.2).
type baseDelay struct {
	now, before time.Duration // shortest round trip of this period and of the last one; 0: no sample
	until       clock.Time    // end of this period
}

func (b *baseDelay) sample(now clock.Time, d time.Duration) {
	if now >= b.until {
		b.before, b.now, b.until = b.now, 0, now.Add(BasePeriod)
	}
	if b.now == 0 || d < b.now {
		b.now = d
	}
}

func (b *baseDelay) get() time.Duration {
	if b.before == 0 {
		return b.now
	}
	return min(b.now, b.before)
}
