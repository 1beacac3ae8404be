package congestion

import (
	"math"
	"time"
)

// noise measures the share of lost packets, to tell random losses from those in a full queue.
type noise struct {
	full            int32 // shortest queue behind which too many packets were lost, in ns; 0: none
	packets, losses int16
}

// acked counts acknowledged packets. Old packets lose their weight by halving.
func (s *noise) acked(n int) {
	if s.packets += int16(n); s.packets >= 2*NoisePackets {
		s.packets, s.losses = s.packets/2, s.losses/2
	}
}

func (s *noise) lost(n int) { s.losses = int16(min(int(s.losses)+n, math.MaxInt16)) }

// exceeds reports whether more packets were lost than random losses explain.
func (s *noise) exceeds() bool {
	packets, losses := int(s.packets), int(s.losses)
	return losses > noiseBurst+(packets+losses)/NoiseShare
}

// dropped notes that a queue of length q was full.
func (s *noise) dropped(q time.Duration) { s.full = int32(min(q, math.MaxInt32)) }

// passed notes that a packet has passed a queue of length q. If q is longer than the queue that was full, the path has
// more room now.
func (s *noise) passed(q time.Duration) {
	if s.full > 0 && q > s.fullQueue() {
		s.dropped(q)
	}
}

// fullQueue returns the length of the queue that was full, or 0 if none is known.
func (s *noise) fullQueue() time.Duration { return time.Duration(s.full) }
