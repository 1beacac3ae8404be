package congestion

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/seq"
)

// round is the state of one round trip. It ends with the acknowledgement of a packet that left after its beginning.
type round struct {
	least   time.Duration // shortest sample
	sum     time.Duration // of all samples
	endPSN  seq.Num       // first packet that left after the beginning
	marks   int32         // marked packets
	acked   int16         // acknowledged packets, at most about two windows
	samples int16
	limited bool // the window has delayed packets
	lost    bool // packets were lost
}

func (r *round) sample(d time.Duration) {
	if r.samples == 0 || d < r.least {
		r.least = d
	}
	r.sum += d
	r.samples++
}

// delay returns the delay of the round: its shortest sample, which ignores packets that a busy host has read late, and a
// bounded part of what the mean exceeds it. Without that part, a connection with many samples in a round would see a
// shorter queue than one with few.
func (r *round) delay() time.Duration {
	return r.least + min((r.sum/time.Duration(r.samples)-r.least)/2, meanPart)
}

// markShare returns the share of marked packets.
func (r *round) markShare() float32 { return min(float32(r.marks)/float32(max(r.acked, 1)), 1) }
