package congestion

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// pacer spaces out packets while the window is below one packet (RFC 9002 §7.7).
type pacer struct {
	nextAt clock.Time // when the next packet may leave
}

// packetSent notes that a packet leaves, and computes when the next one may leave. window is in packets.
func (p *pacer) packetSent(now clock.Time, window float64, srtt time.Duration) {
	if window < 1 {
		p.nextAt = now.Add(min(time.Duration(float64(srtt)/window), max(srtt, maxGap)))
	}
}
