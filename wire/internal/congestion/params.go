package congestion

import "time"

// Tunables. Windows are in packets. Times are those of the sender's clock.
const (
	// MaxWindow bounds the packets in flight on a connection. It is less than the 256 packets that a veth queue holds
	// before it drops.
	MaxWindow = 192
	// InitialWindow is the window of a new connection.
	InitialWindow = 32
	// MinWindow is the smallest window after marks, delay and losses: a packet in 16 round trips.
	MinWindow = 1.0 / 16
	// maxGap bounds the time between two packets when the window is below one and the round trip is shorter than
	// maxGap.
	maxGap = 10 * time.Millisecond

	// LossFactor is what remains of the window after a loss when the delay shows a queue. Without a queue the loss may
	// be random, and NoiseFactor remains.
	LossFactor  = 0.7
	NoiseFactor = 0.9
	// DelayTarget is the round trip that a connection with 16 packets in the network may have on a short path. On a
	// longer path it may have 1.25 times the base delay, which is the shortest round trip in one to two BasePeriods.
	DelayTarget = 100 * time.Microsecond
	BasePeriod  = 5 * time.Second
	// DelayFloor is the smallest window in packets that delay alone can cause. Two packets cannot build a queue on a
	// link that is fast enough for AF_XDP, so that a longer delay then comes from a busy host. Losses and marks can
	// make the window smaller.
	DelayFloor = 2

	// A connection that fills its window has a slowdown every slowdownEvery: slowdownWindow packets for slowdownRounds
	// round trips. Slowdowns are rarer where round trips are long.
	slowdownEvery  = 500 * time.Millisecond
	slowdownWindow = 2
	slowdownRounds = 4
)
