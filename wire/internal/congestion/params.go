package congestion

import "time"

// Tunables. Windows are in packets; times are of the sender's clock.
const (
	// MaxWindow bounds the packets in flight on one connection: less than the 256 packets that a veth
	// queue holds before it drops.
	MaxWindow = 192
	// InitialWindow is the window of a new connection.
	InitialWindow = 32
	// MinWindow is what marks, delay and losses leave at least: a packet in 16 round trips.
	MinWindow = 1.0 / 16
	// maxGap bounds the time between two packets of a window below one, where a round trip is shorter.
	maxGap = 10 * time.Millisecond

	// LossFactor is what a loss leaves of the window when packets queue, NoiseFactor when they do not:
	// then the loss may be noise.
	LossFactor  = 0.7
	NoiseFactor = 0.9
	// DelayTarget is the round trip that a connection with 16 packets in the network may have on a
	// short path. On a longer path it may have a quarter more than the base delay, which is the
	// shortest round trip in one to two BasePeriods.
	DelayTarget = 100 * time.Microsecond
	BasePeriod  = 5 * time.Second
	// DelayFloor is the window that delay alone leaves: so few packets are no queue of their own on any
	// link that AF_XDP is for, and a host that has no time for us delays them. Losses and marks leave less.
	DelayFloor = 2

	// A connection that fills its window slows down every slowdownEvery, with slowdownWindow packets for slowdownRounds
	// round trips; less often where round trips are long.
	slowdownEvery  = 500 * time.Millisecond
	slowdownWindow = 2
	slowdownRounds = 4
)
