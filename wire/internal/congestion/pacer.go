package congestion

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// pacer spaces packets out when less than one of them may be in the network (RFC 9002 §7.7).
type pacer struct {
	next clock.Time // when the next packet may leave
}

// sent takes in that a packet left at a window and a smoothed round trip.
func (p *pacer) sent(now clock.Time, window float64, srtt time.Duration) {
	if window < 1 {
		p.next = now.Add(min(time.Duration(float64(srtt)/window), max(srtt, maxGap)))
	}
}
