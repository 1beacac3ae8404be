package congestion

import "time"

// Tunables. Windows are in bytes, or in full packets where the comment says so. Times are measured on the sender's clock.
// The figures come from simulated networks (docs/NETWORK.md; make network).
const (
	// InitialBytes and InitialPackets give the window of a new connection (RFC 6928 §2): InitialBytes, but at least two
	// and at most InitialPackets full packets.
	InitialBytes   = 14_600
	InitialPackets = 10
	// MinWindow is the smallest window in packets that timeouts leave: one packet in 16 round trips.
	MinWindow = 1.0 / 16
	// PacedWindow is the window in packets below which packets are paced on any path.
	PacedWindow = 2
	// On a path with a base delay of PacedPath or more, larger windows are paced too. That is well above the time between
	// two polls, so a burst is a small part of the window. A burst has at most MaxBurst bytes, the largest group of kernel
	// UDP, and half of the smallest buffer of a switch. Smaller ones would need more timers.
	PacedPath = 500 * time.Microsecond
	MaxBurst  = 64 << 10
	// The rate of the pacer is startPace windows in a round trip in slow start, and steadyPace later (RFC 9002 §7.7). With a
	// steadyPace of 1.25, a flow on a path of 10 ms needs 300 ms instead of 150 ms until losses in slow start have no effect
	// any more: after a pause, its window fills the buffer of the port.
	startPace  = 2
	steadyPace = 1.1
	// maxGap, or the round trip if longer, bounds the time between two paced packets.
	maxGap = 10 * time.Millisecond
	// gapJitter spreads the time between two paced packets by this share, up or down. Without it, connections on one
	// queue keep step, and each of them sees its own burst as the queue of all: of 128 flows, some get 1/6 of others.
	gapJitter = 0.25
	// timeoutJitter is the largest delay of the packet that leaves after a timeout, as a share of the timeout. Packets
	// that were lost together would otherwise be sent again together: of 32 senders of packets of 9000 bytes, some needed
	// six timeouts.
	timeoutJitter = 0.125
	// groupTime bounds the packets of a group to the packets of that time at the rate of a window per round trip.
	groupTime = 250 * time.Microsecond

	// The target is the delay in queues that a connection tolerates (see target). At rate r in MB/s it is the larger of
	//
	//	rootBase + rootScale ÷ √r
	//	logBase − logStep × log₂(r ÷ logRate)
	//
	// and at most MaxQueue. A connection with a lower rate tolerates more, so connections on one queue converge to equal
	// rates. With these figures, 8 flows at 25 Gb/s keep a queue of 13 µs, 32 of 19 µs, and 128 of 34 µs, which is less
	// than the 41 µs of a switch port with 128 KB. The logarithm makes the target steep for few fast flows: with the
	// root alone, a flow with packets of 1500 bytes gets 7 times the rate of one with 9000 bytes.
	rootBase  = 2 * time.Microsecond
	rootScale = 160 * time.Microsecond
	logBase   = 25 * time.Microsecond
	logStep   = 3300 * time.Nanosecond
	logRate   = 24.4 // MB/s: 128 flows share 25 Gb/s
	MaxQueue  = 64 * time.Microsecond
	// BaseShare: on a long path the target is at least 1/BaseShare of the base delay. A round adds more than a few
	// microseconds of queue there. If a queue was full, half of it bounds this share.
	BaseShare = 10
	// Gain is the share of the difference between target and queue that a round corrects. Larger gains oscillate: the
	// effect of a correction shows a round trip later.
	Gain = 0.15
	// MarkDelay lowers the target by this time if all packets are marked, and by a part of it if some are. MarkMemory is
	// the number of rounds over which the share of marked packets is averaged.
	MarkDelay  = 25 * time.Microsecond
	MarkMemory = 64

	// Slow start ends when the queue exceeds startQueue, or 1/startShare of the base delay if that is more.
	startQueue = 6 * time.Microsecond
	startShare = 8
	// Slow start begins again after emptyRounds rounds in a row with a queue below 1/emptyShare of the target: the path
	// has room that the window does not use.
	emptyRounds = 4
	emptyShare  = 4

	// A slowdown bounds the packets in the network to slowdownWindow for slowdownRounds round trips (see slowdown). From one
	// slowdown to the next there are at least slowdownEvery and slowdownRest round trips.
	slowdownWindow = 1
	slowdownRounds = 4
	slowdownEvery  = 200 * time.Millisecond
	slowdownRest   = 300

	// meanPart bounds the part of the mean sample in the delay of a round (see round.delay). It is about the time of a
	// packet of 9000 bytes at 25 Gb/s.
	meanPart = 3 * time.Microsecond

	// DelayFloor is the smallest window in packets that delay causes.
	DelayFloor = 1.0 / 4
	// The path has become longer if the delay exceeds twice the target for steadyRounds rounds, which halve the window
	// three times, and differs from their shortest by at most 1/steadyShare. After four such rounds, 128 flows at 10 Gb/s
	// take their own queue for the path. At the smallest window, steadyRounds with more than MaxQueue suffice.
	//
	// Delay is constant if it differs by at most 1/constantShare of the queue, and no packets are lost: a full buffer is
	// constant too. Then constantRounds suffice, and smallRounds if the delay exceeds half of the target and the window is
	// at most one packet, which is no queue. With a constantShare of 64, one of twelve seeds with 128 flows at 10 Gb/s has
	// a fairness of 0.58 instead of 0.99. A host that measures less exactly sees no constant delay.
	steadyRounds   = 6
	steadyShare    = 16
	constantRounds = 4
	constantShare  = 128
	smallRounds    = 16

	// A loss shrinks the window if more than one of NoiseShare packets was lost, plus noiseBurst: 2 %, the threshold of
	// BBRv2 (draft-cardwell-iccrg-bbr-congestion-control). Fewer losses may be random. If each loss shrank the window,
	// 1 MiB writes over kernel UDP at 1 % of random loss would have 0.1 of their rate; they have 0.7.
	NoiseShare = 50
	noiseBurst = 4
	// NoisePackets is the number of newest packets over which the share of lost packets is measured.
	NoisePackets = 512
)
