package congestion

import "time"

// Tunables. Windows are in packets. Times are measured on the sender's clock.
const (
	// MaxWindow bounds the packets in flight. It is less than the 256 packets that a veth queue holds before it drops.
	MaxWindow = 192
	// InitialWindow is the window of a new connection.
	InitialWindow = 32
	// MinWindow is the smallest window that marks, delay and losses can cause: one packet in 16 round trips.
	MinWindow = 1.0 / 16
	// groupTime bounds the packets of a group to the packets of that time at the rate of a window per round trip.
	groupTime = 250 * time.Microsecond
	// maxGap, or the round trip if longer, bounds the time between two packets while the window is below one packet.
	maxGap = 10 * time.Millisecond

	// LossFactor multiplies the window after a loss if the delay shows a queue. If the delay shows no queue, the loss
	// may be random. Then NoiseFactor multiplies the window, but only if more than one of NoiseShare packets was lost:
	// 2 %, the threshold of BBRv2 (draft-cardwell-iccrg-bbr-congestion-control). With 1 % of random loss, 1 MiB writes
	// over kernel UDP at MTU 1500 have 0.7 of their rate; if each loss shrinks the window, they have 0.1.
	LossFactor  = 0.7
	NoiseFactor = 0.9
	NoiseShare  = 50
	// NoisePackets is the least number of newest packets over which the share of lost packets is measured. In a window
	// of 32 packets a single loss would be more than the share.
	NoisePackets = 512
	// DelayTarget is the round trip above which a window of 16 packets shrinks on a short path; delayLimit has the
	// limit for other windows. On a longer path, the window shrinks if the round trip exceeds 1.25 times the base delay
	// (the round trip of the empty network).
	DelayTarget = 100 * time.Microsecond
	// BasePeriod: the base delay is the shortest round trip of the current BasePeriod and the one before.
	BasePeriod = 5 * time.Second
	// DelayFloor is the smallest window, in packets, to which delay alone shrinks the window. Two packets cannot build
	// a queue on a link that is fast enough for AF_XDP. If the delay is still above its limit with a window of two
	// packets, a busy host is the cause. Losses and marks can make the window smaller.
	DelayFloor = 2

	// A slowdown empties the queue in the network, to measure the base delay (see slowdown): for slowdownRounds round
	// trips, the window is only slowdownWindow packets. A slowdown begins only after a round trip in which a packet
	// waited because of the window. The time from one slowdown to the next is at least slowdownEvery and at least 300
	// round trips. A sudden decrease of the round trip makes it up to slowdownEvery/2 shorter (see shouldBegin).
	slowdownEvery  = 500 * time.Millisecond
	slowdownWindow = 2
	slowdownRounds = 4
)
